"""How KWOK is called: with the program, a kubeconfig and a free port."""

from pathlib import Path

from testbed.nodes.manifest import KUBELET

__all__ = ["STAGES", "kwok_arguments", "kwok_environment"]

STAGES = Path(__file__).with_name("stages")

POD_ADDRESSES, NODE_ADDRESS = "10.192.0.1/11", "10.224.0.1"
"""Nothing connects to them, but EndpointSlices refuse loopback. Outside of the ranges of kind and of Services."""


def kwok_arguments(kubeconfig: Path, port: int) -> list[str]:
    """Return KWOK's arguments. `port` on loopback answers /healthz.

    Only nodes with the label of simulated ones are touched, so it can join a cluster that has real ones. Heartbeats are
    writes of the node's status and no leases: a KWOK that is started again would wait for the old one's leases."""
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
    """KWOK reads kwok.yaml of its own folder before what the arguments name: `folder` in place of the user's."""
    return {"KWOK_WORKDIR": str(folder)}
