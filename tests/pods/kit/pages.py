"""Runs the commands of a page on the node, as a user with bash, helm, kubectl and rayhelm does."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pods.kit.cluster import Cluster
from pods.kit.page_stand_ins import describe
from rayhelm.deploy.charts.helm import charts_dir, find_helm
from shared.page_commands import PageCommand, list_commands, read_substitutions, substitute
from testbed.images.__main__ import build
from testbed.node.images import give
from testbed.node.operator import install_operator
from testbed.tools import program
from testbed.tools.checkout import HERE

__all__ = ["restored", "run_page"]

SUBSTITUTIONS = HERE.root / "tests/pods/substitutions.yaml"
BEGIN = "----- begin of a command -----"
ASKS = "/v1/chat/completions"


def run_page(cluster: Cluster, page: str, file: str, folder: Path) -> tuple[list[PageCommand], dict[str, Any]]:
    """Run the commands of a page in an empty folder, with its first YAML block in `file`. Return them, and the answer
    to the one that asks for a chat completion. Raises AssertionError with the output up to a command that fails."""
    text = (HERE.root / page).read_text()
    wanted = [each for each in read_substitutions(SUBSTITUTIONS) if each.page == page]
    commands = substitute(list_commands(text), wanted)
    (folder / file).write_text(_read_block(text))
    # As in a checkout, where Helm may write the charts that another one contains.
    shutil.copytree(charts_dir(), folder / "charts")
    environment = _make_environment(cluster, folder)
    script = "\n".join(["set -euo pipefail", *(f"echo; echo '{BEGIN}'\n{each.run}" for each in commands if each.run)])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    outputs = done.stdout.split(BEGIN)[1:]
    run = [each for each in commands if each.run]
    assert done.returncode == 0, (
        f"{page}: exit code {done.returncode} of\n{run[len(outputs) - 1].run}\n{done.stdout}\n{_describe(cluster)}"
    )
    (answer,) = (output for command, output in zip(run, outputs, strict=True) if ASKS in command.run)
    found = re.search(r"\{.*\}", answer)
    assert found, answer
    return commands, json.loads(found[0])


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
        if created := _list_namespaces(cluster) - before:
            cluster.kubectl("delete", "namespace", *sorted(created), "--ignore-not-found", "--timeout=300s")


def _read_block(page: str) -> str:
    """Return the first YAML block of a page."""
    return re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0]


def _make_environment(cluster: Cluster, folder: Path) -> Mapping[str, str]:
    """Return the variables for the commands, with `stand-ins` beside the tools of the checkout on PATH."""
    layout = build()
    image, haproxy = (give(cluster.node.home, cluster.pid, layout, tag) for tag in ("cpu", "haproxy"))
    tools = folder / ".bin"
    tools.mkdir()
    found = {"kubectl": program("kubectl"), "helm": find_helm(), "rayhelm": Path(sys.executable).with_name("rayhelm")}
    for name, path in found.items():
        (tools / name).symlink_to(path)
    (tools / "stand-ins").write_text(f'#!/bin/sh\nexec {sys.executable} -m pods.kit.page_stand_ins "$@"\n')
    (tools / "stand-ins").chmod(0o755)
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
