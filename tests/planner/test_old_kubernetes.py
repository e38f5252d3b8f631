"""Versions of Kubernetes that are rendered and checked against schemas: accepted, and named by the plan."""

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from rayhelm.facts.versions import is_at_least, versions
from rayhelm.fleet.pools import Cluster
from rayhelm.planner.kubernetes import load_features
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load
from shared.small_fleet import the_problem

ROOT = Path(__file__).parents[2]
FLEET = """
fleet: old
clusters: {main: {kubernetes: "%s", apiServer: {cidrs: [10.0.0.1/32]}, logs: {stdout: true}}}
pools: {gpu: {gpu: L4-24GB, nodes: 2}}
models: {chat: {source: Qwen/Qwen3-8B, context: 8192, unpinnedReason: an example}}
tenants: {apps: {models: [chat]}}
"""
# Kubernetes 1.30 has all of these: macros, strings, lists and the authorizer. Newer ones would not compile there.
CEL_OF_1_30 = {
    *("all", "exists", "exists_one", "filter", "map", "has", "size", "string", "int", "double", "bool", "type", "dyn"),
    *("contains", "startsWith", "endsWith", "matches", "join", "replace", "split", "substring", "indexOf"),
    *("lowerAscii", "quantity", "isQuantity", "isGreaterThan", "isLessThan", "compareTo"),
    *("group", "resource", "subresource", "namespace", "name", "check", "allowed"),
}


def warnings(version: str) -> list[str]:
    return [text for text in plan_fleet(load(FLEET % version)).warnings if "schemas of this version" in text]


def test_fleet_file_takes_the_versions_of_the_versions_file() -> None:
    assert get_args(Cluster.model_fields["kubernetes"].annotation) == versions().kubernetes.accepted


@pytest.mark.parametrize("version", versions().kubernetes.supported)
def test_plan_has_no_warning_for_a_version_that_was_run(version: str) -> None:
    assert warnings(version) == []


@pytest.mark.parametrize(
    ("version", "differ"),
    [("1.31", ["ResourceClaims", "SidecarContainers"]), ("1.32", ["ResourceClaims", "SidecarContainers"]),
     ("1.33", ["ResourceClaims"])],
)  # fmt: skip
def test_plan_names_what_differs_in_an_older_version(version: str, differ: list[str]) -> None:
    (text,) = warnings(version)
    assert f"cluster `main` has Kubernetes {version}" in text
    assert "nothing was run on it (run: 1.34, 1.35, 1.36)" in text
    assert [name for name in ("ResourceClaims", "SidecarContainers") if name in text] == differ


def test_plan_names_only_features_that_the_fleet_uses() -> None:
    fleet = (FLEET % "1.31").replace(", logs: {stdout: true}", "").replace("tenants: {apps: {models: [chat]}}\n", "")
    (text,) = [text for text in plan_fleet(load(fleet)).warnings if "schemas of this version" in text]
    assert text.endswith("(run: 1.34, 1.35, 1.36)")


@pytest.mark.parametrize("version", ["'1.30'", "'1.37'", "1.3", "'2.0'", "v1.36", "'1.36.1'"])
def test_other_version_is_refused_with_the_range(version: str) -> None:
    text = f"""\
fleet: small
clusters: {{main: {{kubernetes: {version}}}}}
pools: {{gpu: {{gpu: L4-24GB, nodes: 2}}}}
models: {{chat: {{source: Qwen/Qwen2.5-7B-Instruct, context: 4096}}}}
"""
    problem = the_problem(text)
    assert problem.line == 2
    assert "'1.31', '1.32', '1.33', '1.34', '1.35' or '1.36'" in problem.message


def test_features_differ_in_versions_that_are_rendered() -> None:
    for feature in load_features().values():
        assert not is_at_least(versions().kubernetes.rendered[0], feature.since)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in ROOT.glob("policies/*/policy.yaml")))
def test_policies_use_functions_that_the_oldest_version_has(name: str) -> None:
    texts = list_texts(list(yaml.safe_load_all((ROOT / f"policies/{name}/policy.yaml").read_text())))
    assert texts
    code = re.sub(r"'[^']*'|\"[^\"]*\"", "''", "\n".join(texts))
    assert set(re.findall(r"\b([a-zA-Z_]\w*)\(", code)) <= CEL_OF_1_30


def list_texts(node: object) -> list[str]:
    """Expressions of a policy, in every place."""
    if isinstance(node, dict):
        own = [str(value) for key, value in node.items() if key in ("expression", "messageExpression")]
        return own + [text for value in node.values() for text in list_texts(value)]
    return [text for each in node for text in list_texts(each)] if isinstance(node, list) else []
