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
from typing import Any, Protocol

from pods.kit.page_stand_ins import describe
from rayhelm.deploy.charts.helm import find_helm
from rayhelm.live.cluster.kubectl import Kubectl
from shared.page_commands import PageCommand, list_commands, list_files, read_substitutions, substitute
from testbed.images import Layout
from testbed.images.__main__ import build
from testbed.node.operator import install_operator
from testbed.tools import program
from testbed.tools.checkout import HERE

__all__ = ["ASKS", "PageCluster", "PageRun", "list_commands_of", "restored", "run_page"]

SUBSTITUTIONS = HERE.root / "tests/pods/substitutions.yaml"
BEGIN = "----- begin of a command -----"
ASKS = "/v1/chat/completions"
MODULES = {"stand-ins": "pods.kit.page_stand_ins", "kv-put": "pods.kit.external_secrets"}
"""Modules by the command that runs them."""
BEFORE = "set -euo pipefail; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"
"""Commands in the background end with the others."""


class PageCluster(Protocol):
    """A cluster on which commands of pages run."""

    kubectl: Kubectl

    @property
    def kubeconfig(self) -> Path: ...

    def give(self, layout: Layout, tag: str) -> str: ...


@dataclass(frozen=True)
class PageRun:
    """The commands of a page, all of which succeeded."""

    commands: list[PageCommand]
    outputs: list[str]
    """Of those commands that ran, and last of the ones that were added."""
    folder: Path
    environment: Mapping[str, str]

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
        (output,) = (output for command, output in zip(self.ran, self.outputs, strict=False) if part in command.run)
        return output

    def command_with(self, part: str) -> str:
        """Return the only command with a text in it, as it ran."""
        (command,) = (command.run for command in self.ran if part in command.run)
        return command

    def run_again(self, command: str, variables: Mapping[str, str]) -> tuple[int, str]:
        """Run a command in the same folder; return its exit code and its output."""
        return _run(f"{BEFORE}\n{command}", self.folder, {**self.environment, **variables})


def list_commands_of(page: str) -> tuple[list[PageCommand], list[PageCommand]]:
    """Return the commands and the files of a page, with what replaces those that cannot run."""
    text = (HERE.root / page).read_text()
    wanted = [each for each in read_substitutions(SUBSTITUTIONS) if each.page == page]
    commands = list_commands(text)
    replaced = substitute([*commands, *list_files(text)], wanted)
    return replaced[: len(commands)], replaced[len(commands) :]


def run_page(
    cluster: PageCluster,
    page: str,
    files: Sequence[str],
    folder: Path,
    variables: Mapping[str, str] = MappingProxyType({}),
    *,
    then: str = "",
) -> PageRun:
    """Run the commands of a page in a folder, with its first YAML blocks in `files`. Both can use `variables`. `then`
    is one more command, which can use what the page sets. Raises AssertionError with the output up to a command that
    fails."""
    commands, blocks = list_commands_of(page)
    for file, block in zip(files, blocks, strict=False):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(Template(block.run).substitute(variables))
    environment = _make_environment(cluster, folder) | dict(variables)
    wanted = [*(each.run for each in commands if each.run), *([then] if then else [])]
    script = "\n".join([BEFORE, *(f"echo; echo '{BEGIN}'\n{each}" for each in wanted)])
    code, said = _run(script, folder, environment)
    run = PageRun(commands, said.split(BEGIN)[1:], folder, environment)
    last = wanted[len(run.outputs) - 1]
    assert code == 0, f"{page}: exit code {code} of\n{last}\n{said}\n{_describe(cluster)}"
    return run


def _run(script: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@contextmanager
def restored(cluster: PageCluster) -> Iterator[None]:
    """Remove the releases and the namespaces that were created meanwhile."""
    before = _list_namespaces(cluster)
    try:
        yield
    finally:
        helm = [str(find_helm()), f"--kubeconfig={cluster.kubeconfig}"]
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


def _make_environment(cluster: PageCluster, folder: Path) -> dict[str, str]:
    """Return the variables for the commands, with MODULES beside the tools of the checkout on PATH."""
    layout = build()
    image, haproxy = (cluster.give(layout, tag) for tag in ("cpu", "haproxy"))
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
        "KUBECONFIG": str(cluster.kubeconfig),
        "HELM_CACHE_HOME": str(folder / ".helm"),
        "HF_TOKEN": "of-no-account",
        "IMAGE": image,
        "STAND_INS": describe(kuberay=install_operator(cluster.kubectl), image=image, haproxy=haproxy),
    }


def _list_namespaces(cluster: PageCluster) -> set[str]:
    return {item["metadata"]["name"] for item in cluster.kubectl.get("namespaces")["items"]}


def _describe(cluster: PageCluster) -> str:
    """Return pods and the last events, for the message of a failure."""
    pods = cluster.kubectl("get", "pods", "--all-namespaces", "--output=wide")
    events = cluster.kubectl("get", "events", "--all-namespaces", "--sort-by=.lastTimestamp").splitlines()
    return "\n".join([pods, *events[-40:]])
