"""Send manifests to a cluster."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rayhelm.errors import RayhelmError
from testbed.tools import program

__all__ = ["apply", "kubectl"]

MANAGER = "rayhelm-testbed-nodes"


def apply(manifests: Sequence[dict[str, Any]], kubeconfig: Path) -> None:
    """Server-side, so that a second time changes nothing. A node's size is part of its status: it is taken when the
    node is made, and is a resource of its own from then on.

    Raises RayhelmError with what the API server said, MissingError without kubectl."""
    there = kubectl(kubeconfig, "get", "nodes", "--output=name").split()
    _apply(manifests, kubeconfig)
    again = [item for item in manifests if item["kind"] == "Node" and f"node/{item['metadata']['name']}" in there]
    _apply(again, kubeconfig, "--subresource=status")


def kubectl(kubeconfig: Path, *arguments: str, text: str = "") -> str:
    """What kubectl prints; `text` is its standard input. Raises RayhelmError with what it said."""
    command = [str(program("kubectl")), f"--kubeconfig={kubeconfig}", *arguments]
    answer = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise RayhelmError(f"kubectl {' '.join(arguments)}: {answer.stderr.strip()}")
    return answer.stdout


def _apply(manifests: Sequence[dict[str, Any]], kubeconfig: Path, *options: str) -> None:
    if not manifests:
        return
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
    how = ["apply", "--server-side", "--force-conflicts", f"--field-manager={MANAGER}", "--filename=-", *options]
    kubectl(kubeconfig, *how, text=text)
