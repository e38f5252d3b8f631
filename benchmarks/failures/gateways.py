"""Events of the gateway: pods, keys, versions."""

import time

from failures.scene import Scene
from rayhelm.errors import RayhelmError
from rayhelm.rehearsal.without_gpus import LOAD_CLIENT
from rayhelm.render.releases import Release

__all__ = ["kill_gateway", "move_shares", "roll_gateway", "rotate_key"]

SECRET_DELAY = 120.0
"""Seconds until a changed Secret is in every pod: the kubelet needs about a minute."""


def kill_gateway(scene: Scene) -> None:
    """Delete a gateway pod without a grace period: its connections are closed."""
    name = scene.session.list_pods(scene.gateway)[0]["metadata"]["name"]
    where = f"--namespace={scene.gateway.namespace}"
    scene.session.kubectl("delete", "pod", name, where, "--grace-period=0", "--force")
    time.sleep(2)
    scene.session.wait_for_rollout(scene.gateway)


def roll_gateway(scene: Scene) -> None:
    deployment = f"deployment/{scene.gateway.name}"
    scene.session.kubectl("rollout", "restart", deployment, f"--namespace={scene.gateway.namespace}")
    scene.session.wait_for_rollout(scene.gateway)


def rotate_key(scene: Scene) -> None:
    """Add a second key, change the clients to it, and remove the first."""
    assert scene.load
    first = scene.session.keys[LOAD_CLIENT]
    key = scene.session.add_key(scene.gateway, LOAD_CLIENT)
    time.sleep(SECRET_DELAY)
    with scene.run_load("load-second-key", key) as others:
        scene.load.stop()
        scene.session.remove_other_keys(scene.gateway, LOAD_CLIENT, key)
        time.sleep(SECRET_DELAY)
        assert "401" in _refused(scene, first)
    scene.load.outcome += others.outcome


def move_shares(scene: Scene) -> None:
    """Send 20 % of the requests to the second version, then all, then none."""
    for share in (20, 100, 0):
        scene.session.install(_shares(scene, share))
        scene.session.wait_for_rollout(scene.gateway)
        time.sleep(20)


def _shares(scene: Scene, share: int) -> Release:
    versions = {"stable": {"weight": 100 - share}, "next": {"weight": share}}
    return scene.change_values(scene.gateway, {"models": {"chat": {"versions": versions}}})


def _refused(scene: Scene, key: str) -> str:
    """Return the error of a client with this key; empty if it is served."""
    try:
        with scene.run_load("load-first-key", key, timeout=1):
            return ""
    except RayhelmError as error:
        return str(error)
