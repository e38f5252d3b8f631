"""Offline tests of the policies: their own cases, attempts to bypass them, and what they do not check."""

import copy
import json
import random
import re
from typing import Any

import pytest
import yaml

from policies.kit.cases import BREAKS, CASES, FOLDER, NAMES, Case, asked, case, documents, namespace, policies
from rayhelm.check.admission.evaluate import MESSAGE, evaluate_policies
from rayhelm.fleet.yaml_nodes import Loader

Object = dict[str, Any]

ALLOWED_FUNCTIONS = {
    *("has", "all", "exists", "exists_one", "map", "filter"),
    *("matches", "startsWith", "endsWith", "contains", "size", "int", "string"),
    *("dyn", "replace", "split", "join", "substring", "indexOf"),
}
"""What the API server and the offline run both know."""
AUTHORIZER = "authorizer."
"""Only the API server knows what the requester may do; the offline run takes that as given."""


def broken(item: Object, within: Object | None = None, old: Object | None = None) -> set[str]:
    """Rules; an expression that fails is reported with its own error."""
    return {violation.rule or violation.message for violation in asked(item, within, old)}


# -- cases -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", [one for one in CASES if one.good], ids=str)
def test_good_object_passes_every_policy(one: Case) -> None:
    assert broken(one.item, one.namespace, one.before) == set()


@pytest.mark.parametrize("one", [one for one in CASES if not one.good], ids=str)
def test_bad_object_is_refused_by_the_rules_that_it_names(one: Case) -> None:
    assert one.rules
    assert broken(one.item, one.namespace, one.before) == one.rules


@pytest.mark.parametrize("one", [one for one in CASES if not one.good], ids=str)
def test_refusal_says_what_to_write_instead(one: Case) -> None:
    for violation in asked(one.item, one.namespace, one.before):
        assert violation.what
        assert violation.fix
        assert "\n" not in violation.message, "the API server takes no messages of several lines"


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_of_a_policy_has_a_bad_object(name: str) -> None:
    (policy,) = (each for each in policies() if each.name == f"rayhelm-{name}")
    reported = {found[1] for each in policy.validations if (found := MESSAGE.fullmatch(each.message))}
    tried = {rule for one in CASES if one.policy == name for rule in one.rules}
    assert reported - {"serve-config-size", "serve-config-keys"} <= tried
    assert reported == set(policy.fields)


@pytest.mark.parametrize("name", NAMES)
def test_validation_message_has_rule_problem_and_fix(name: str) -> None:
    (policy,) = (each for each in policies() if each.name == f"rayhelm-{name}")
    for validation in policy.validations:
        assert MESSAGE.fullmatch(validation.message), validation.message


@pytest.mark.parametrize("name", NAMES)
def test_policy_readme_has_all_sections_and_rules(name: str) -> None:
    (policy,) = (each for each in policies() if each.name == f"rayhelm-{name}")
    readme = (FOLDER / name / "README.md").read_text()
    for part in ("## Why", "## Rules", "## Exceptions", "## Limits"):
        assert part in readme
    for rule in policy.fields:
        assert f"| `{rule}` |" in readme
    assert f"`{name}`" in (FOLDER / "README.md").read_text()


# -- form ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_expression_uses_only_functions_of_api_server_and_lint(name: str) -> None:
    policy, binding = documents(FOLDER / name / "policy.yaml")
    assert binding["spec"]["policyName"] == policy["metadata"]["name"] == f"rayhelm-{name}"
    spec = policy["spec"]
    for expression in re.findall(r'"(?:expression|messageExpression)": ("(?:[^"\\]|\\.)*")', json.dumps(spec)):
        text = json.loads(expression)
        if AUTHORIZER in text:
            assert text.startswith("!(request.userInfo.username"), "only the shared part asks"
            continue
        bare = re.sub(r"""r?'(?:[^'\\]|\\.)*'|r?"(?:[^"\\]|\\.)*\"""", "''", text)
        assert set(re.findall(r"\b([a-z_A-Z]+)\(", bare)) <= ALLOWED_FUNCTIONS, text
        assert ".?" not in bare
        assert "[?" not in bare


def test_policies_share_their_match_conditions() -> None:
    """The conditions are the same text in each, so that none looks at more than the others."""
    conditions: dict[str, set[str]] = {}
    for name in NAMES:
        spec = documents(FOLDER / name / "policy.yaml")[0]["spec"]
        assert spec["failurePolicy"] == "Fail"
        for each in spec["matchConditions"]:
            conditions.setdefault(each["name"], set()).add(each["expression"])
        names = [each["name"] for each in spec["matchConditions"]]
        assert names[:2] == ["not-deleted", "changed"]
        assert not any("status" in resource for rule in spec["matchConstraints"]["resourceRules"]
                       for resource in rule["resources"])  # fmt: skip
    assert len(conditions["not-deleted"]) == len(conditions["creates-pods"]) == 1
    assert len(conditions["changed"]) <= 8, "one for kinds with replicas, else one for each form of object"
    assert len(conditions["ray-or-gpu-pod"]) == 1


def test_policy_never_judges_namespaces_of_kubernetes() -> None:
    bad = [one.item for one in CASES if not one.good]
    for name in ("kube-system", "kube-public", "kube-node-lease"):
        assert not [violation for item in bad for violation in evaluate_policies(policies(), item, namespace(name))]
    before, after = namespace("kube-system", labels={"rayhelm.dev/tenant": "search"}), namespace("kube-system")
    assert not evaluate_policies(policies(), after, namespace(), before)


# -- changes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", [one for one in CASES if not one.good], ids=str)
def test_existing_bad_object_can_be_labeled_and_deleted(one: Case) -> None:
    labeled = copy.deepcopy(one.item)
    labeled["metadata"].setdefault("labels", {})["team"] = "x"
    assert broken(labeled, one.namespace, one.item) == set()
    going = copy.deepcopy(one.item)
    going["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    going["spec"] = {}
    assert broken(going, one.namespace, one.item) == set()


@pytest.mark.parametrize(
    "one", [one for one in CASES if not one.good and not one.before and "spec" in one.item], ids=str
)
def test_good_object_cannot_be_changed_into_a_bad_one(one: Case) -> None:
    before = copy.deepcopy(one.item)
    before["spec"] = {"headGroupSpec": {}, "containers": []}
    assert broken(one.item, one.namespace, before) == one.rules


@pytest.mark.parametrize("one", [one for one in CASES if one.before], ids=str)
def test_policy_of_changes_does_not_judge_new_objects(one: Case) -> None:
    assert broken(one.item) == set()


@pytest.mark.parametrize("one", [one for one in CASES if not one.good and one.item["kind"] == "RayCluster"], ids=str)
def test_autoscaler_can_scale_an_existing_bad_cluster(one: Case) -> None:
    scaled, before = copy.deepcopy(one.item), copy.deepcopy(one.item)
    for item, replicas in ((before, 1), (scaled, 2)):
        for group in item["spec"].setdefault("workerGroupSpecs", []):
            group["replicas"] = replicas
            group["scaleStrategy"] = {"workersToDelete": [f"pod-{replicas}"]}
        item["spec"]["suspend"] = replicas == 2
    assert broken(scaled, one.namespace, before) == set()


# -- serveConfigV2 ---------------------------------------------------------------------------------------------------


def test_config_longer_than_the_limit_is_refused() -> None:
    for count, rules in ((230, set()), (300, {"serve-config-size"})):
        item = case("serve-config-form", "json", good=True)
        config = json.loads(item["spec"]["serveConfigV2"])
        item["spec"]["serveConfigV2"] = json.dumps({**config, "x": ["y" * 100] * count}, indent=2, sort_keys=True)
        assert broken(item) == rules


@pytest.mark.parametrize(
    ("count", "length", "rules"),
    [(390, 12, set()), (450, 12, {"serve-config-keys"}), (550, 4, set()), (700, 4, {"serve-config-keys"})],
)
def test_object_with_more_keys_than_can_be_compared_is_refused(count: int, length: int, rules: set[str]) -> None:
    item = case("serve-config-form", "json", good=True)
    config = json.loads(item["spec"]["serveConfigV2"])
    keys = {f"{number:0{length}d}": 1 for number in range(count)}
    item["spec"]["serveConfigV2"] = json.dumps({**config, "x": keys}, indent=2, sort_keys=True)
    assert broken(item) == rules


@pytest.mark.parametrize("keys", [["a", "a"], ["a", "b", "a"], ["a", "ab", "b", "ab"]])
def test_repeated_key_is_found_wherever_it_is(keys: list[str]) -> None:
    item = case("serve-config-form", "json", good=True)
    text = item["spec"]["serveConfigV2"].rstrip().removesuffix("}").rstrip()
    assert not broken(item)
    lines = ",\n".join(f'    "{key}": 1' for key in keys)
    item["spec"]["serveConfigV2"] = f'{text},\n  "x": {{\n{lines}\n  }}\n}}\n'
    assert broken(item) == {"serve-config-key"}


def test_output_of_json_dumps_has_the_form() -> None:
    item = case("serve-config-form", "json", good=True)
    odd = {
        "": [],
        "a b": {"c": [[], {}, [[1.5, -2e-9, None]]]},
        "http_options": {"request_timeout_s": 5},
        "é": "é\u2028",
    }
    item["spec"]["serveConfigV2"] = json.dumps({**odd, "e": odd.pop("é")}, indent=2, sort_keys=True)
    assert "\\u2028" in item["spec"]["serveConfigV2"]
    assert broken(item) == {"serve-config-form"}, "é is escaped by Python and not by Go"
    item["spec"]["serveConfigV2"] = json.dumps(odd, indent=2, sort_keys=True, ensure_ascii=False)
    assert broken(item) == set()


@pytest.mark.parametrize("one", [one for one in CASES if one.policy == "serve-config-form"], ids=str)
def test_config_with_the_form_reads_the_same_as_json_and_as_yaml(one: Case) -> None:
    """KubeRay reads YAML. Where the form holds, both readings have to agree; where they do not, it must not hold."""
    text = one.item["spec"]["serveConfigV2"]
    assert reads_alike(text) or not one.good


def test_random_edits_of_a_config_keep_one_reading_or_lose_the_form() -> None:
    """Some thousand edits at random, by the characters that mean something to YAML or JSON."""
    (form,) = (each for each in policies() if each.name == "rayhelm-serve-config-form")
    item = case("serve-config-form", "all-kinds-of-values", good=True)
    text, chance, kept = item["spec"]["serveConfigV2"], random.Random(7), 0
    signs = [
        "\n",
        " ",
        "  ",
        "\t",
        *"{}[],:\"'#|>\\%@.01e",
        "&a ",
        "*a",
        "!!str ",
        "- ",
        "? ",
        "---",
        "<<",
        "\\u0041",
        "null",
    ]
    bits = [*signs, '"a": 1,', '"a",\n', *text.splitlines(keepends=True)]
    for _ in range(3000):
        edited = text
        for _ in range(chance.randint(1, 3)):
            at, upto = sorted((chance.randrange(len(edited)), min(len(edited), chance.randrange(len(edited)))))
            upto = upto if chance.random() < 0.1 else min(upto, at + chance.randint(0, 3))
            edited = edited[:at] + chance.choice(bits) + edited[upto:]
        item["spec"]["serveConfigV2"] = edited
        if not evaluate_policies([form], item, namespace()):
            kept += 1
            assert reads_alike(edited), edited
    assert kept > 20, "too few kept the form for this to mean something"


def reads_alike(text: str) -> bool:
    """As JSON without doubled keys, and as YAML, by the types of YAML 1.2 that KubeRay's reader knows too."""
    try:
        return bool(json.loads(text, object_pairs_hook=_once) == yaml.load(text, Loader=Loader))
    except (ValueError, yaml.YAMLError):
        return False


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("doubled key")
    return dict(pairs)


def test_serve_config_form_has_many_bad_objects() -> None:
    assert len([one for one in CASES if one.policy == "serve-config-form" and not one.good]) > 40


def test_only_bad_objects_name_rules() -> None:
    assert all((BREAKS in one.item["metadata"].get("annotations", {})) != one.good for one in CASES)


def test_kyverno_policy_is_reported_with_its_own_fix() -> None:
    """Its schema is not at hand; that it was not run is said where people read of it."""
    (policy,) = documents(FOLDER / "image-signature/kyverno.yaml")
    assert (policy["apiVersion"], policy["kind"]) == ("policies.kyverno.io/v1", "ImageValidatingPolicy")
    assert {found[1] for each in policy["spec"]["validations"] if (found := MESSAGE.fullmatch(each["message"]))} == {
        "image-signature"
    }
    assert "not run here" in (FOLDER / "image-signature/README.md").read_text().lower()
    assert "image-signature" not in NAMES
