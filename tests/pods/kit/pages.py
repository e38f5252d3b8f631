"""Runs the commands of a page on the node, as a user with bash, helm, kubectl and rayhelm does."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any

from pods.kit.cluster import Cluster
from pods.kit.page_stand_ins import describe
from rayhelm.deploy.charts.helm import find_helm
from shared.page_commands import PageCommand, list_commands, list_files, read_substitutions, substitute
from testbed.images.__main__ import build
from testbed.node.images import give
from testbed.node.operator import install_operator
from testbed.tools import program
from testbed.tools.checkout import HERE

__all__ = ["PageRun", "restored", "run_page"]

SUBSTITUTIONS = HERE.root / "tests/pods/substitutions.yaml"
BEGIN = "----- begin of a command -----"
ASKS = "/v1/chat/completions"
MODULES = {"stand-ins": "pods.kit.page_stand_ins", "kv-put": "pods.kit.external_secrets"}
"""Modules by the command that runs them."""
BEFORE = "set -euo pipefail; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"
"""Commands in the background end with the others."""


@dataclass(frozen=True)
class PageRun:
    """The commands of a page, all of which succeeded."""

    commands: list[PageCommand]
    outputs: list[str]
    """Of those commands that ran."""

    @property
    def ran(self) -> list[PageCommand]:
        return [command for command in self.commands if command.run]

    @property
    def answer(self) -> dict[str, Any]:
        """The answer to the command that asks for a chat completion."""
        said = self.output_of(ASKS)
        found = re.search(r"\{.*\}", said)
        assert found, said
        answer: dict[str, Any] = json.loads(found[0])
        return answer

    def output_of(self, part: str) -> str:
        """Return the output of the only command with a text in it."""
        (output,) = (output for command, output in zip(self.ran, self.outputs, strict=True) if part in command.run)
        return output


def run_page(
    cluster: Cluster, page: str, files: Sequence[str], folder: Path, variables: Mapping[str, str] = MappingProxyType({})
) -> PageRun:
    """Run the commands of a page in a folder, with its first YAML blocks in `files`. Both can use `variables`. Raises
    AssertionError with the output up to a command that fails."""
    text = (HERE.root / page).read_text()
    wanted = [each for each in read_substitutions(SUBSTITUTIONS) if each.page == page]
    commands = list_commands(text)
    replaced = substitute([*commands, *list_files(text)], wanted)
    commands, blocks = replaced[: len(commands)], replaced[len(commands) :]
    for file, block in zip(files, blocks, strict=False):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(Template(block.run).substitute(variables))
    environment = _make_environment(cluster, folder) | dict(variables)
    script = "\n".join([BEFORE, *(f"echo; echo '{BEGIN}'\n{each.run}" for each in commands if each.run)])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    run = PageRun(commands, done.stdout.split(BEGIN)[1:])
    last = run.ran[len(run.outputs) - 1].run
    assert done.returncode == 0, f"{page}: exit code {done.returncode} of\n{last}\n{done.stdout}\n{_describe(cluster)}"
    return run


@contextmanager
def restored(cluster: Cluster) -> Iterator[None]:
    """Remove the releases and the namespaces that were created meanwhile."""
    before = _list_namespaces(cluster)
    try:
        yield
    finally:
        helm = [str(find_helm()), f"--kubeconfig={cluster.node.home.kubeconfig}"]
        listed = subprocess.check_output([*helm, "list", "-A", "--date", "--reverse", "--output=json"])
        for release in json.loads(listed):
            where = f"--namespace={release['namespace']}"
            subprocess.run([*helm, "uninstall", release["name"], where, "--wait", "--timeout=5m"], check=False)
        created = sorted(_list_namespaces(cluster) - before)
        for name in created:
            # Kubernetes looks again only after half of the grace period of a pod that it finds in a namespace.
            cluster.kubectl("delete", "pods", "--all", f"--namespace={name}", "--timeout=300s")
        if created:
            cluster.kubectl("delete", "namespace", *created, "--ignore-not-found", "--timeout=300s")


def _make_environment(cluster: Cluster, folder: Path) -> dict[str, str]:
    """Return the variables for the commands, with MODULES beside the tools of the checkout on PATH."""
    layout = build()
    image, haproxy = (give(cluster.node.home, cluster.pid, layout, tag) for tag in ("cpu", "haproxy"))
    tools = folder / ".bin"
    tools.mkdir()
    found = {"kubectl": program("kubectl"), "helm": find_helm(), "rayhelm": Path(sys.executable).with_name("rayhelm")}
    for name, path in found.items():
        (tools / name).symlink_to(path)
    for name, module in MODULES.items():
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
        (tools / name).chmod(0o755)
    return os.environ | {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": f"{HERE.root}/tests:{HERE.root}",
        "KUBECONFIG": str(cluster.node.home.kubeconfig),
        "HELM_CACHE_HOME": str(folder / ".helm"),
        "HF_TOKEN": "of-no-account",
        "IMAGE": image,
        "STAND_INS": describe(kuberay=install_operator(cluster.kubectl), image=image, haproxy=haproxy),
    }


def _list_namespaces(cluster: Cluster) -> set[str]:
    return {item["metadata"]["name"] for item in cluster.kubectl.get("namespaces")["items"]}


def _describe(cluster: Cluster) -> str:
    """Return pods and the last events, for the message of a failure."""
    pods = cluster.kubectl("get", "pods", "--all-namespaces", "--output=wide")
    events = cluster.kubectl("get", "events", "--all-namespaces", "--sort-by=.lastTimestamp").splitlines()
    return "\n".join([pods, *events[-40:]])
