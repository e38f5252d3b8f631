"""Run tests/kind on a new cluster of kind, and write ci/kind/result.json. Linux, as root.

A Docker daemon that answers is used; else ci/kind/docker starts one, and ci/kind/node-image builds the node image (or
KIND_IMAGE names one that the daemon has). Writes nothing if a test fails, or if the cluster leaves something on this
computer. No result is committed yet; tests/repository/test_verified_results.py is where CI would compare it with the
present scripts, tests and page.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "ci/kind/result.json"
TEST = ROOT / "tests/kind/test_smoke.py"
NAME = "verify"
STATE = ROOT / ".state/kind" / NAME
OWN = "ci/kind/docker"
"""Command of a daemon of our own."""
NODE = "jsonpath={.items[0].status.nodeInfo}"
SHOWN = ("kubeletVersion", "containerRuntimeVersion", "osImage", "kernelVersion")


def compute_digest() -> str:
    """Return the checksum of what the result depends on: not of the charts, which change each day."""
    from kind.kit.cluster import PAGE
    from pods.kit.pages import list_commands_of

    files = [*(ROOT / "ci/kind").rglob("*"), *(ROOT / "tests/kind").rglob("*.py"), *(ROOT / "ci/tools/kind").iterdir()]
    commands = [each.run for each in list_commands_of(PAGE)[0]]
    parts = [path.read_bytes() for path in sorted(files) if path.is_file() and path != RESULT]
    return hashlib.sha256(b"\0".join([*parts, *(command.encode() for command in commands)])).hexdigest()


@dataclass(frozen=True)
class Traces:
    """What a cluster can leave on this computer, by the mark of the daemon's cgroup and the folder of its state."""

    settings: Mapping[str, str]
    """Settings of the kernel that a kubelet changes."""
    left: tuple[str, ...]
    """Mounts, processes, cgroups and files."""

    @classmethod
    def read(cls) -> "Traces":
        shown = 'source ci/kind/docker; echo "$cgroup"; cd /proc/sys; grep "" "${settings[@]}"'
        mark, *lines = _read("bash", "-c", shown).splitlines()
        return cls(dict(line.split(":", 1) for line in lines), tuple(find_remains(mark, ROOT / ".state/kind")))

    def describe_changes(self, before: "Traces") -> list[str]:
        changed = [
            f"/proc/sys/{name} is {value}, and was {before.settings[name]}"
            for name, value in self.settings.items()
            if value != before.settings[name]
        ]
        return [*changed, *(each for each in self.left if each not in before.left)]


def main() -> int:
    """Make the cluster, run the tests, remove both, and write the result."""
    from testbed.tools import find
    from verify_test import run_tests

    begin, inputs, before = time.monotonic(), compute_digest(), Traces.read()
    with _docker() as prefix, _cluster(prefix) as environment:
        code, outcomes = run_tests(TEST, prefix, environment)
        node = _describe_node(prefix) if code == 0 else {}
    own = bool(prefix)
    # The kubelet of a node changes settings of the daemon's computer: kind does not put them back.
    changes = [each for each in Traces.read().describe_changes(before) if own or not each.startswith("/proc/sys")]
    if changes:
        print("not written: the cluster left on this computer:", *changes, sep="\n  - ", file=sys.stderr)
    if code or changes:
        return code or 1
    versions = {each: find.found(each).version for each in ("kind", "kuberay-operator", "helm")}
    written = {
        "inputs": inputs,
        "versions": versions,
        "node": node,
        "own daemon and node image": own,
        "seconds": round(time.monotonic() - begin),
        "left on the computer": changes,
        "tests": outcomes,
    }
    RESULT.write_text(json.dumps(written, indent=2) + "\n")
    print(f"written: {RESULT.relative_to(ROOT)}")
    return 0


@contextmanager
def _docker() -> Iterator[list[str]]:
    """Yield the prefix of commands that reach a Docker daemon, empty for that of this computer."""
    if shutil.which("docker") and subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0:
        yield []
        return
    _run(OWN, "up")
    try:
        yield [OWN, "run"]
    finally:
        _run(OWN, "down")


@contextmanager
def _cluster(prefix: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the environment of the tests."""
    environment = os.environ | {"KIND_NAME": NAME, "RAYHELM_KIND": f"rayhelm-{NAME}"}
    environment["RAYHELM_KIND_KUBECONFIG"] = str(STATE / "kubeconfig")
    if prefix and not environment.get("KIND_IMAGE"):
        environment["KIND_IMAGE"] = _read("ci/kind/node-image").strip()
    try:
        _run(*prefix, "ci/kind/create", environment=environment)
        yield environment
    finally:
        _run(*prefix, "ci/kind/down", environment=environment)


def _describe_node(prefix: Sequence[str]) -> dict[str, str]:
    command = [".tools/bin/kubectl", f"--kubeconfig={STATE}/kubeconfig", "get", "nodes", f"--output={NODE}"]
    said = json.loads(_read(*prefix, *command))
    return {name: said[name] for name in SHOWN}


def find_remains(mark: str, state: Path) -> Iterator[str]:
    """Yield mounts and processes of a state folder, and what has `mark` in its cgroup or command."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if str(state) in line:
            yield f"the mount {line.split()[4]}"
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text() + (process / "cgroup").read_text()
        except OSError:
            continue  # it has ended
        if mark in words or str(state) in words:
            yield f"the process {process.name} ({words.partition(chr(0))[0]})"
    for folder in Path("/sys/fs/cgroup").rglob(f"{mark}*"):
        yield f"the cgroup {folder}"
    if state.exists() and any(state.iterdir()):
        yield f"files in {state}"


def _read(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def _run(*command: str, environment: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
