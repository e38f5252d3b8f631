"""What happens to the gateway: pods, keys, versions."""

import time

from failures.scene import Scene
from rayhelm.errors import RayhelmError
from rayhelm.rehearsal.without_cards import CALLER
from rayhelm.render.releases import Release

__all__ = ["door_killed", "door_rolled", "key_rotated", "shares_moved"]

KNOWN = 120.0
"""Seconds until a changed Secret is in every pod: the kubelet takes a minute or so, and one hears before the other."""


def door_killed(scene: Scene) -> None:
    """Without a grace: its connections end with it."""
    name = scene.stage.pods(scene.door)[0]["metadata"]["name"]
    where = f"--namespace={scene.door.namespace}"
    scene.stage.kubectl("delete", "pod", name, where, "--grace-period=0", "--force")
    time.sleep(2)
    scene.stage.rolled(scene.door)


def door_rolled(scene: Scene) -> None:
    deployment = f"deployment/{scene.door.name}"
    scene.stage.kubectl("rollout", "restart", deployment, f"--namespace={scene.door.namespace}")
    scene.stage.rolled(scene.door)


def key_rotated(scene: Scene) -> None:
    """A second key beside the first, callers change to it, and the first is taken away: nobody knows it any more."""
    assert scene.load
    first = scene.stage.keys[CALLER]
    key = scene.stage.rotate(scene.door, CALLER)
    time.sleep(KNOWN)
    with scene.called("callers-with-another-key", key) as others:
        scene.load.end()
        scene.stage.only(scene.door, CALLER, key)
        time.sleep(KNOWN)
        assert "401" in _refused(scene, first)
    scene.load.outcome += others.outcome


def shares_moved(scene: Scene) -> None:
    """80/20 for the version beside it, all of it, and back."""
    for share in (20, 100, 0):
        scene.stage.install(_shares(scene, share))
        scene.stage.rolled(scene.door)
        time.sleep(20)


def _shares(scene: Scene, share: int) -> Release:
    versions = {"stable": {"weight": 100 - share}, "next": {"weight": share}}
    return scene.changed(scene.door, {"models": {"chat": {"versions": versions}}})


def _refused(scene: Scene, key: str) -> str:
    """What a caller with this key is told; empty where it is served."""
    try:
        with scene.called("callers-with-the-first-key", key, patience=1):
            return ""
    except RayhelmError as error:
        return str(error)
