"""Install CRDs. On a joined cluster, CRDs that others installed are not changed."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rayhelm.errors import MissingError
from rayhelm.live.cluster.kubectl import MANAGER, Kubectl
from rayhelm.processes import wait_until
from testbed.control_plane.running import PATIENCE, ControlPlane
from testbed.tools import crd_files

__all__ = ["install_crds", "installed_by_us", "wait_until_established"]

BESIDE = ("prometheus-operator", "argo-cd", "gateway-api", "keda", "gpu-operator", "intel-device-plugins")
"""Optional bundles: missing ones are counted and named."""
MANAGERS = '--output=jsonpath={range .items[*]}{.metadata.name}{" "}{.metadata.managedFields[*].manager}{"\\n"}{end}'


def install_crds(plane: ControlPlane, kubectl: Kubectl, kuberay: str, say: Callable[[str], None]) -> None:
    """Install the CRDs. Raises MissingError without the CRDs of the operator under test."""
    files = crd_files("kuberay", version=kuberay)
    left_out = []
    for bundle in BESIDE:
        try:
            files += crd_files(bundle)
        except MissingError as error:
            left_out.append(f"CRDs of {bundle}: {error}")
    if plane.record.joined:
        others = {name for name, managers in _list_managers(kubectl).items() if MANAGER not in managers}
        left_out += [
            f"CRD {_read_name(file)}: the cluster has one that others installed"
            for file in files
            if _read_name(file) in others
        ]
        files = [file for file in files if _read_name(file) not in others]
    say(f"{len(files)} CRDs" + "".join(f"\n  not installed: {line}" for line in left_out))
    if files:
        kubectl.apply_files(*files)
        wait_until_established(kubectl, files)
    plane.home.write(plane.record.model_copy(update={"left_out": tuple(left_out)}))


def wait_until_established(kubectl: Kubectl, files: Sequence[Path]) -> None:
    """Wait until the API server serves the kinds of these CRDs.

    Not by `kubectl wait`: it fails for a CRD whose conditions the API server has not written yet."""
    get = ("get", "--output=json", *(f"--filename={file}" for file in files))

    def are_established() -> bool:
        found = json.loads(kubectl(*get))
        return all(map(_is_established, found.get("items", [found])))

    wait_until(lambda: are_established() or None, what="the CRDs", timeout=PATIENCE)


def _is_established(crd: dict[str, Any]) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []
    return any((item["type"], item["status"]) == ("Established", "True") for item in conditions)


def installed_by_us(kubectl: Kubectl) -> list[str]:
    """Return the names of the CRDs that the testbed installed."""
    return [name for name, managers in _list_managers(kubectl).items() if MANAGER in managers]


def _list_managers(kubectl: Kubectl) -> dict[str, set[str]]:
    """Return the field managers of each CRD."""
    lines = kubectl("get", "crd", "--show-managed-fields", MANAGERS, "--request-timeout=60s").splitlines()
    return {words[0]: set(words[1:]) for line in lines if (words := line.split())}


def _read_name(file: Path) -> str:
    # A regular expression, because PyYAML cannot parse all CRDs. The first `name:` with this indentation is the
    # metadata's.
    found = re.search(r"^  name: [\"']?([a-z0-9.-]+)", file.read_text(), re.MULTILINE)
    return found[1] if found else file.stem
