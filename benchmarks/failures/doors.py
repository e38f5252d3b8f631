"""What happens to the gateway: pods, keys, versions."""

import time

from failures.scene import Scene
from rayhelm.errors import RayhelmError
from rayhelm.rehearsal.without_gpus import LOAD_CLIENT
from rayhelm.render.releases import Release

__all__ = ["door_killed", "door_rolled", "key_rotated", "shares_moved"]

KNOWN = 120.0
"""Seconds until a changed Secret is in every pod: the kubelet takes a minute or so, and one hears before the other."""


def door_killed(scene: Scene) -> None:
    """Without a grace: its connections end with it."""
    name = scene.session.list_pods(scene.door)[0]["metadata"]["name"]
    where = f"--namespace={scene.door.namespace}"
    scene.session.kubectl("delete", "pod", name, where, "--grace-period=0", "--force")
    time.sleep(2)
    scene.session.wait_for_rollout(scene.door)


def door_rolled(scene: Scene) -> None:
    deployment = f"deployment/{scene.door.name}"
    scene.session.kubectl("rollout", "restart", deployment, f"--namespace={scene.door.namespace}")
    scene.session.wait_for_rollout(scene.door)


def key_rotated(scene: Scene) -> None:
    """A second key beside the first, callers change to it, and the first is taken away: nobody knows it any more."""
    assert scene.load
    first = scene.session.keys[LOAD_CLIENT]
    key = scene.session.add_key(scene.door, LOAD_CLIENT)
    time.sleep(KNOWN)
    with scene.called("callers-with-another-key", key) as others:
        scene.load.stop()
        scene.session.remove_other_keys(scene.door, LOAD_CLIENT, key)
        time.sleep(KNOWN)
        assert "401" in _refused(scene, first)
    scene.load.outcome += others.outcome


def shares_moved(scene: Scene) -> None:
    """80/20 for the version beside it, all of it, and back."""
    for share in (20, 100, 0):
        scene.session.install(_shares(scene, share))
        scene.session.wait_for_rollout(scene.door)
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
