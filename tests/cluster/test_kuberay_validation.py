"""None of KubeRay's errors is forgotten: all that it returns for a RayService are in data/kuberay-validation.yaml."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from cluster.kit.refused import DATA, table
from testbed.tools.catalog import module
from testbed.tools.checkout import HERE
from testbed.tools.toolchain import environment, go_for

SOURCE = "controllers/ray/utils/validation.go"
ASKED_FIRST = (
    "ValidateRayServiceMetadata",
    "ValidateRayServiceSpec",
    "ValidateRayClusterMetadata",
    "ValidateRayClusterUpgradeOptions",
    "ValidateRayClusterStatus",
)
"""What the reconcilers of RayService and RayCluster call."""
KNOWN = yaml.safe_load((DATA / "kuberay-validation.yaml").read_text())


@pytest.fixture(scope="module")
def source() -> str:
    """Of the version that is pinned."""
    pinned = module("kuberay", HERE)
    command = [go_for("1.21", HERE), "list", "-m", "-f", "{{.Dir}}", pinned.recipe.module]
    offline = environment(HERE) | {"GOPROXY": "off"}
    listed = subprocess.run(command, cwd=pinned.folder, env=offline, capture_output=True, text=True, check=False)
    # Of a module that is not there, Go lists no folder, or it fails because it may not ask a proxy.
    if listed.returncode or not listed.stdout.strip():
        pytest.skip("KubeRay's source is not in Go's module cache")
    return Path(listed.stdout.strip(), SOURCE).read_text()


def test_every_error_of_kuberays_is_refused_by_the_chart_or_out_of_its_reach(source: str) -> None:
    reported = [text for part in KNOWN.values() for texts in part.values() for text in texts]
    assert sorted(reported) == sorted(errors(source))


def test_rule_that_is_there_before_kuberay_is_tried_in_a_cluster() -> None:
    assert not [rule for rule in KNOWN["rules"] if "kuberay" not in table()[rule].whose]


def errors(source: str) -> set[str]:
    """Texts of all errors that can come of the functions asked first, and of those that they call."""
    functions = dict(re.findall(r"^func (\w+)\((.*?)^}", source, re.MULTILINE | re.DOTALL))
    todo, found = list(ASKED_FIRST), set[str]()
    while todo:
        body = functions.pop(todo.pop(), "")
        todo += re.findall(r"\b(validate\w+)\(", body, re.IGNORECASE)
        for literals in re.findall(r'(?:Errorf|Sprintf|errstd\.New)\(\s*((?:"(?:[^"\\]|\\.)*"\s*\+?\s*)+)', body):
            found.add("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)))
    return {text for text in found if text != "%s" and not text.endswith("is invalid: %w")}
