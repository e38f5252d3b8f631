"""The policies that the chart platform installs are those of the folder `policies`, with typed values in them."""

from typing import Any

import pytest
import yaml

from charts import kit
from charts.kit import HELMS, only
from policies.kit.cases import CASES, FOLDER, NAMES, Case, case, documents, namespace
from rayhelm.check.admission.evaluate import evaluate_policies
from rayhelm.check.admission.policy import load_chart_policies, read_policies
from rayhelm.deploy.charts.helm import charts_dir

Object = dict[str, Any]

ODD = """it's "fine" <b>&amp; {{ .Values }} $1 \\ é by contract"""


def rendered(policies: Object | None = None, helm: str = "4") -> list[Object]:
    return kit.rendered(
        {"policies": policies or {}}, chart="platform", base="platform/minimal", release="platform",
        namespace="rayhelm-system", helm=helm,
    )  # fmt: skip


def policy(objects: list[Object], name: str) -> Object:
    return only(objects, "ValidatingAdmissionPolicy", f"rayhelm-{name}")


def binding(objects: list[Object], name: str) -> Object:
    return only(objects, "ValidatingAdmissionPolicyBinding", f"rayhelm-{name}")


def broken(objects: list[Object], item: Object, within: Object | None = None) -> set[str]:
    return {
        violation.rule for violation in evaluate_policies(list(read_policies(objects)), item, within or namespace())
    }


def spec_of(name: str) -> tuple[Object, Object]:
    policy, binding = documents(FOLDER / name / "policy.yaml")
    return policy["spec"], binding["spec"]


@pytest.mark.parametrize("name", NAMES)
def test_chart_has_a_copy_of_each_policy(name: str) -> None:
    copied = (charts_dir() / f"platform/files/policies/{name}.yaml").read_text()
    assert copied.startswith("# Generated")
    assert copied == (FOLDER / name / "policy.yaml").read_text()


def test_chart_has_no_other_policy_file() -> None:
    assert sorted(file.stem for file in (charts_dir() / "platform/files/policies").iterdir()) == NAMES


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("name", NAMES)
def test_rendered_policy_equals_the_policy_of_the_folder(name: str, helm: str) -> None:
    spec, bound = spec_of(name)
    assert policy(rendered(helm=helm), name)["spec"] == spec
    made = binding(rendered(helm=helm), name)["spec"]
    excluded = made["matchResources"]["namespaceSelector"]["matchExpressions"][0]["values"]
    assert excluded == ["kube-system", "kube-public", "kube-node-lease", "gpu-operator"]
    made["matchResources"]["namespaceSelector"]["matchExpressions"][0]["values"] = excluded[:3]
    assert made == bound


@pytest.mark.parametrize("one", CASES, ids=str)
def test_copies_in_the_chart_decide_alike(one: Case) -> None:
    assert {
        violation.rule for violation in evaluate_policies(load_chart_policies(), one.item, one.namespace, one.before)
    } == one.rules


@pytest.mark.parametrize("action", ["Warn", "Audit"])
def test_notes_report_a_weaker_action_with_its_reason(action: str) -> None:
    made = binding(rendered({"gpuOwner": {"action": action, "reason": ODD}}), "gpu-owner")
    assert made["spec"]["validationActions"] == [action]
    assert made["metadata"]["annotations"]["rayhelm.dev/reason"] == ODD


def test_disabled_policy_is_not_rendered() -> None:
    names = {item["metadata"]["name"] for item in rendered({"gpuOwner": {"action": "off", "reason": "no GPUs here"}})}
    assert "rayhelm-gpu-owner" not in names
    assert "rayhelm-token-auth" in names


def test_namespace_is_excluded_from_all_policies_or_one_with_a_reason() -> None:
    objects = rendered(
        {"excludedNamespaces": {"legacy": ODD}, "tokenAuth": {"excludedNamespaces": {"lab": "trials only"}}}
    )
    bad = case("token-auth", "not-set")
    assert broken(objects, bad) == {"auth-reason"}
    assert broken(objects, bad, namespace("legacy")) == broken(objects, bad, namespace("lab")) == set()
    assert broken(objects, case("image-source", "latest"), namespace("lab")) == {"image-latest"}
    notes = binding(objects, "token-auth")["metadata"]["annotations"]
    assert notes["rayhelm.dev/excluded-legacy"] == ODD
    assert notes["rayhelm.dev/excluded-lab"] == "trials only"


def test_policies_never_check_namespaces_of_kubernetes() -> None:
    objects = rendered({"excludedNamespaces": {"kube-system": "said twice"}})
    for name in NAMES:
        selector = binding(objects, name)["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"][0]
        assert selector["values"].count("kube-system") == 1


@pytest.mark.parametrize("reason", ["our own builds", ODD])
def test_registry_is_allowed_with_a_reason(reason: str) -> None:
    bad = case("image-source", "another-registry")
    assert broken(rendered(), bad) == {"image-source"}
    for registry in ("registry.example.com/", "registry.example.com/llm"):
        assert broken(rendered({"imageSource": {"registries": {registry: reason}}}), bad) == set()
    for registry in ("registry.example.com/ll", "example.com/"):
        assert broken(rendered({"imageSource": {"registries": {registry: reason}}}), bad) == {"image-source"}


def test_allowing_a_registry_does_not_allow_latest() -> None:
    bad = case("image-source", "latest")
    assert broken(rendered({"imageSource": {"registries": {"rayproject/": "all of Ray's"}}}), bad) == {"image-latest"}


@pytest.mark.parametrize(
    ("named", "case_name", "kind"),
    [
        ("Qwen/Qwen3-8B", "on", "RayService"),
        ("Qwen/Qwen3-8B", "second-model", "RayService"),
        ("Qwen/Qwen3-8B", "prefill", "RayService"),
        ("qwen3-8b", "no-source", "RayService"),
        ("Qwen/Qwen3-8B", "vllm-pod", "Pod"),
    ],
)
def test_remote_code_of_a_listed_model_is_allowed(named: str, case_name: str, kind: str) -> None:
    bad = case("remote-code", case_name, kind)
    assert broken(rendered(), bad) == {"trust-reason"}
    assert broken(rendered({"remoteCode": {"trusted": {named: ODD}}}), bad) == set()
    for other in ("Qwen/Qwen3-8", "wen/Qwen3-8B", "Qwen/Qwen3.8B", "Qwen/Qwen3-8B-Base", "Qwen"):
        assert broken(rendered({"remoteCode": {"trusted": {other: ODD}}}), bad) == {"trust-reason"}


@pytest.mark.parametrize(
    "line",
    [
        '"tokenizer_source": "other/tokenizer"',
        '"model_source": {\n                "bucket_uri": "s3://other"\n              }',
    ],
)
def test_remote_code_of_a_tokenizer_or_mirror_must_be_listed(line: str) -> None:
    bad = case("remote-code", "on")
    text = bad["spec"]["serveConfigV2"]
    source = next(row.strip() for row in text.splitlines() if "model_source" in row)
    after = f"{source},\n              {line}" if "tokenizer" in line else line
    bad["spec"]["serveConfigV2"] = text.replace(source, after)
    assert broken(rendered({"remoteCode": {"trusted": {"Qwen/Qwen3-8B": ODD}}}), bad) == {"trust-reason"}


@pytest.mark.parametrize(
    ("case_name", "kind"),
    [("no-commit", "RayService"), ("no-source", "RayService"), ("path-of-branch", "RayService"),
     ("first-model", "RayService"), ("download", "Job"), ("vllm-pod", "Pod"), ("entrypoint", "RayJob")],
)  # fmt: skip
def test_listed_model_needs_no_revision(case_name: str, kind: str) -> None:
    bad = case("model-revision", case_name, kind)
    assert broken(rendered(), bad) == {"model-revision"}
    assert broken(rendered({"modelRevision": {"unpinned": {"Qwen/Qwen3-8B": ODD}}}), bad) == set()
    for other in ("Qwen/Qwen3-8", "wen/Qwen3-8B", "Qwen/Qwen3.8B"):
        assert broken(rendered({"modelRevision": {"unpinned": {other: ODD}}}), bad) == {"model-revision"}


def test_each_policy_has_one_binding() -> None:
    """A policy without its binding does nothing, and a binding without its policy is an error of the cluster."""
    kinds = [item["kind"] for item in rendered() if item["kind"].startswith("ValidatingAdmissionPolicy")]
    assert len(kinds) == 2 * len(NAMES)
    assert kinds.count("ValidatingAdmissionPolicy") == len(NAMES)


def test_rendered_policy_survives_a_yaml_round_trip() -> None:
    objects = rendered()
    assert list(yaml.safe_load_all(yaml.safe_dump_all(objects))) == objects
