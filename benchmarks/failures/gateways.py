"""Events of the gateway: pods, keys, versions."""

import time

from failures.installation import Installation
from rayhelm.deploy.render.releases import Release
from rayhelm.errors import RayhelmError
from rayhelm.run.rehearsal.without_gpus import LOAD_CLIENT

__all__ = ["kill_gateway", "move_shares", "roll_gateway", "rotate_key"]

SECRET_DELAY = 120.0
"""Seconds until a changed Secret is in every pod: the kubelet needs about a minute."""


def kill_gateway(installation: Installation) -> None:
    """Delete a gateway pod without a grace period: its connections are closed."""
    name = installation.session.list_pods(installation.gateway)[0]["metadata"]["name"]
    where = f"--namespace={installation.gateway.namespace}"
    installation.session.kubectl("delete", "pod", name, where, "--grace-period=0", "--force")
    time.sleep(2)
    installation.session.wait_for_rollout(installation.gateway)


def roll_gateway(installation: Installation) -> None:
    deployment = f"deployment/{installation.gateway.name}"
    installation.session.kubectl("rollout", "restart", deployment, f"--namespace={installation.gateway.namespace}")
    installation.session.wait_for_rollout(installation.gateway)


def rotate_key(installation: Installation) -> None:
    """Add a second key, change the clients to it, and remove the first."""
    assert installation.load
    first = installation.session.keys[LOAD_CLIENT]
    key = installation.session.add_key(installation.gateway, LOAD_CLIENT)
    time.sleep(SECRET_DELAY)
    with installation.run_load("load-second-key", key) as others:
        installation.load.stop()
        installation.session.remove_other_keys(installation.gateway, LOAD_CLIENT, key)
        time.sleep(SECRET_DELAY)
        assert "401" in _refused(installation, first)
    installation.load.outcome += others.outcome


def move_shares(installation: Installation) -> None:
    """Send 20 % of the requests to the second version, then all, then none."""
    for share in (20, 100, 0):
        installation.session.install(_shares(installation, share))
        installation.session.wait_for_rollout(installation.gateway)
        time.sleep(20)


def _shares(installation: Installation, share: int) -> Release:
    versions = {"stable": {"weight": 100 - share}, "next": {"weight": share}}
    return installation.change_values(installation.gateway, {"models": {"chat": {"versions": versions}}})


def _refused(installation: Installation, key: str) -> str:
    """Return the error of a client with this key; empty if it is served."""
    try:
        with installation.run_load("load-first-key", key, timeout=1):
            return ""
    except RayhelmError as error:
        return str(error)
