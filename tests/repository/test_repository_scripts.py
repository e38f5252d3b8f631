"""Shell scripts and workflows: linted, pinned and limited in time, and kind in the version that is supported."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayhelm.facts.versions import versions
from testbed.control_plane.programs import ADDONS
from testbed.tools.catalog import tools
from testbed.tools.checkout import HERE
from testbed.tools.crds import bundles

ROOT = Path(__file__).resolve().parent.parent.parent
KIND = ROOT / "ci" / "kind"
RIGHTS = {
    ("fleet", "fleet"): {"contents": "read"},
    ("fleet", "comment"): {"pull-requests": "write"},
    ("release", "build"): {"contents": "read"},
    ("release", "attest"): {"contents": "read", "actions": "read", "id-token": "write"},
    ("release", "publish"): {"contents": "write", "actions": "read", "id-token": "write"},
}
"""What a job of a workflow may do: the comment, the identity that signs, the release."""
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*"))


def scripts() -> list[Path]:
    """Every file outside of what is built or fetched that bash reads.

    Of `__pycache__` nothing is read: other processes rename files in it at any time.
    """
    folders = [ROOT / "ci", ROOT / ".ci", ROOT / ".github", ROOT / "tests", ROOT / "benchmarks"]
    entries = [path for folder in folders for path in folder.rglob("*") if "__pycache__" not in path.parts]
    files = [path for path in entries if path.is_file()]
    return [path for path in files if path.suffix == ".bash" or path.read_bytes().startswith(b"#!/usr/bin/env bash\n")]


def workflow(path: Path) -> dict[Any, Any]:
    content: dict[Any, Any] = yaml.safe_load(path.read_text())
    return content


# -- shell -----------------------------------------------------------------------------------------------------------


def test_lint_runs_shellcheck_on_every_script() -> None:
    output = subprocess.check_output(["make", "-C", ROOT, "--dry-run", "--no-print-directory", "lint"], text=True)
    (line,) = re.findall(r"shellcheck --external-sources (.*)$", output, re.MULTILINE)
    assert {ROOT / name for name in line.split()} == set(scripts())


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.name)
def test_script_stops_at_the_first_failure(script: Path) -> None:
    if script.suffix == ".bash":
        assert not os.access(script, os.X_OK)  # it is sourced
    else:
        assert "\nset -euo pipefail\n" in script.read_text()
        assert os.access(script, os.X_OK)


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.name)
def test_script_does_not_pipe_into_a_command_that_stops_reading(script: Path) -> None:
    """The writer is killed by SIGPIPE, at random, and with pipefail that fails the pipeline."""
    code = "\n".join(line for line in script.read_text().splitlines() if not line.lstrip().startswith("#"))
    assert not re.search(r"[^|]\|\s*(head\b|grep (-\w*q|-\w*m\s*\d|--quiet|--max-count))", code)


# -- workflows -------------------------------------------------------------------------------------------------------


def test_workflows_are_for_fleets_the_tests_kind_and_releases() -> None:
    assert [path.name for path in WORKFLOWS] == ["fleet.yaml", "kind.yaml", "release.yaml", "test.yaml"]
    text = {path.name: path.read_text() for path in WORKFLOWS}
    assert "- run: .ci/run\n" in text["test.yaml"]
    assert "- run: ci/kind/test" in text["kind.yaml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_has_read_permission_only_and_a_timeout(path: Path) -> None:
    content = workflow(path)
    assert content["permissions"] == {"contents": "read"}
    # A release that has begun is not canceled by the next one.
    assert content["concurrency"]["cancel-in-progress"] is (path.stem != "release")
    for name, job in content["jobs"].items():
        assert 0 < job["timeout-minutes"] <= 90
        assert job.get("permissions", {}) == RIGHTS.get((path.stem, name), {})


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_pins_actions_by_commit_and_names_their_version(path: Path) -> None:
    used = re.findall(r"^ +- uses: (.*)", path.read_text(), re.MULTILINE)
    assert used
    for line in used:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_checkout_keeps_no_credentials(path: Path) -> None:
    steps = [step for job in workflow(path)["jobs"].values() for step in job["steps"]]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert [each["with"]["persist-credentials"] for each in checkouts] == [False] * len(checkouts)


# -- kind ------------------------------------------------------------------------------------------------------------


def test_kind_runs_the_default_kubernetes_from_a_pinned_image() -> None:
    nodes = yaml.safe_load((KIND / "cluster.yaml").read_text())["nodes"]
    pattern = rf"kindest/node:v{re.escape(versions().kubernetes.default)}\.\d+@sha256:[0-9a-f]{{64}}"
    assert all(re.fullmatch(pattern, node["image"]) for node in nodes)


def test_kind_workflow_uses_the_cluster_name_of_the_scripts() -> None:
    named = subprocess.check_output(["bash", "-c", "source ci/kind/host.bash && echo $cluster"], cwd=ROOT, text=True)
    (kind,) = (path for path in WORKFLOWS if path.stem == "kind")
    assert f"export logs .cache/kind-logs --name {named.strip()}'" in kind.read_text()


def test_kind_builds_addons_and_no_control_plane() -> None:
    (line,) = re.findall(r"^tools=\((.*)\)$", (KIND / "up").read_text(), re.MULTILINE)
    built = {name for name, tool in tools(HERE).items() if tool.module and name in ADDONS}
    assert set(line.split()) == built | {bundle.name for bundle in bundles(HERE)}
