"""Command line and environment of KWOK."""

from pathlib import Path

from testbed.nodes.manifest import KUBELET

__all__ = ["STAGES", "kwok_arguments", "kwok_environment"]

STAGES = Path(__file__).with_name("stages")

POD_ADDRESSES, NODE_ADDRESS = "10.192.0.1/11", "10.224.0.1"
"""Addresses of simulated pods, outside of the ranges of kind and of Services. Nothing connects to them, but
EndpointSlices refuse loopback addresses."""


def kwok_arguments(kubeconfig: Path, port: int) -> list[str]:
    """Return Return KWOK's arguments. `port` on loopback answers /healthz.

    KWOK changes only nodes with the label of simulated nodes, so the cluster can have real nodes too. Heartbeats are
    status updates instead of leases, because a restarted KWOK would wait for the leases of the old one."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--server-address=127.0.0.1:{port}",
        f"--manage-nodes-with-label-selector={KUBELET}=alive",
        f"--cidr={POD_ADDRESSES}",
        f"--node-ip={NODE_ADDRESS}",
        "--node-lease-duration-seconds=0",
        *(f"--config={file}" for file in sorted(STAGES.glob("*.yaml"))),
    ]


def kwok_environment(folder: Path) -> dict[str, str]:
    """Return the environment of KWOK. It reads kwok.yaml of its own folder before the arguments: `folder` replaces the
    user's."""
    return {"KWOK_WORKDIR": str(folder)}
