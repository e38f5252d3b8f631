"""python -m testbed.nodes FLEET [--cluster NAME]: create the simulated nodes of a fleet on a cluster with KWOK."""

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from rayhelm.errors import RayhelmError, UsageError
from rayhelm.fleet.load import load_fleet
from testbed.nodes.kubectl import apply
from testbed.nodes.simulated import cpu_nodes, simulated, uniform
from testbed.nodes.volumes import volumes

GPUS_PER_NODE = 8


def main(arguments: list[str]) -> int:
    """Create the nodes. Exit codes: 0 success, 1 the fleet or the API server reports an error, 2 wrong usage, 3 no
    kubectl."""
    parser = argparse.ArgumentParser(prog="python -m testbed.nodes", description=__doc__)
    parser.add_argument("fleet", nargs="?", type=Path, metavar="FLEET", help="a fleet file")
    parser.add_argument("--cluster", default="", help="cluster of the fleet, if it has several")
    parser.add_argument("--gpus", type=int, help=f"number of H100 GPUs without a fleet, {GPUS_PER_NODE} per node")
    parser.add_argument("--cpu-nodes", type=int, default=2, help="number of additional nodes without GPUs (2)")
    parser.add_argument("--kubeconfig", type=Path, help="kubeconfig of the cluster; default: KUBECONFIG")
    parser.add_argument("-o", dest="output", choices=["yaml"], help="print the manifests, and do not use a cluster")
    chosen = parser.parse_args(arguments)
    try:
        manifests = _build_manifests(chosen)
        if chosen.output:
            print(yaml.safe_dump_all(manifests, sort_keys=False), end="")
        else:
            apply(manifests, _find_kubeconfig(chosen.kubeconfig))
            print(reported(manifests))
    except RayhelmError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def reported(manifests: list[dict[str, Any]]) -> str:
    """Summarize the manifests: `9 nodes with 16 nvidia.com/gpu, 16 volumes`."""
    kinds = Counter(manifest["kind"] for manifest in manifests)
    devices: Counter[str] = Counter()
    for manifest in manifests:
        capacity = manifest.get("status", {}).get("capacity", {})
        devices.update({name: int(count) for name, count in capacity.items() if "/" in name})
    gpus = " and ".join(f"{count} {name}" for name, count in devices.items()) or "no GPUs"
    more = f", {kinds['PersistentVolume']} volumes" if kinds["PersistentVolume"] else ""
    return f"{kinds['Node']} nodes with {gpus}{more}"


def _build_manifests(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    if (chosen.fleet is None) == (chosen.gpus is None):
        raise UsageError("a fleet file or a number of GPUs is required: python -m testbed.nodes --gpus 1000")
    if chosen.cpu_nodes < 0:
        raise UsageError(f"--cpu-nodes {chosen.cpu_nodes}: must be 0 or more")
    if chosen.gpus is not None:
        if chosen.gpus < 1 or chosen.gpus % GPUS_PER_NODE:
            raise UsageError(f"--gpus {chosen.gpus}: must be a multiple of {GPUS_PER_NODE}, the GPUs of a node")
        return [*uniform(nodes=chosen.gpus // GPUS_PER_NODE), *cpu_nodes(chosen.cpu_nodes)]
    loaded = load_fleet(chosen.fleet)
    nodes = simulated(loaded, chosen.cluster)
    return [*nodes, *cpu_nodes(chosen.cpu_nodes), *volumes(loaded, chosen.cluster)]


def _find_kubeconfig(named: Path | None) -> Path:
    path = named or Path(os.environ.get("KUBECONFIG", ""))
    if not path.is_file():
        said = f"there is no {path}" if named or "KUBECONFIG" in os.environ else "no kubeconfig is set"
        raise UsageError(f"{said}: --kubeconfig PATH, or KUBECONFIG=PATH, or `-o yaml` to print the manifests")
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
