"""Names of models as clients send them, and the Kubernetes names that are derived from them."""

import re

import pytest

from rayhelm.deploy.compose.gateway import build_gateways
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.errors import Fix
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.names import derive_kubernetes_name
from shared.fleets import plan
from shared.small_fleet import problems, read, the_problem

HEAD = """\
fleet: names
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}}}
pools: {gpu: {gpu: H100-SXM-80GB, nodes: 4}}
models:
"""
QWEN = "source: Qwen/Qwen3-8B, context: 4096"


@pytest.mark.parametrize(
    ("model", "derived"),
    [
        ("chat", "chat"),
        ("my--model", "my--model"),
        ("llama-3.1-8b", "llama-3-1-8b"),
        ("Qwen/Qwen3-32B-AWQ", "qwen-qwen3-32b-awq"),
        ("gpt_oss", "gpt-oss"),
        ("4-bit", "m-4-bit"),
        ("a" * 47, "a" * 47),
        ("a" * 48, f"{'a' * 40}-97daac"),
    ],
)
def test_kubernetes_name_is_derived_from_the_name_of_a_model(model: str, derived: str) -> None:
    assert derive_kubernetes_name(model) == derived


def test_long_names_with_one_start_have_different_kubernetes_names() -> None:
    names = {derive_kubernetes_name(f"{'Owner/Model-' * 6}{number}") for number in range(100)}
    assert len(names) == 100
    assert all(re.fullmatch("[a-z][a-z0-9-]{0,45}[a-z0-9]", name) for name in names)


def test_values_have_derived_names_and_clients_keep_theirs() -> None:
    text = f"{HEAD}  Qwen/Qwen3-8B: {{{QWEN}}}\ntenants: {{apps: {{models: [Qwen/Qwen3-8B]}}}}\n"
    planned = plan(text)
    values = build_ray_service_values(planned)
    assert {*values} == {"qwen-qwen3-8b"}
    assert {*values["qwen-qwen3-8b"].serve.applications["qwen-qwen3-8b"].models} == {"Qwen/Qwen3-8B"}
    gateway = build_gateways(planned, values)["main"].models
    assert gateway["Qwen/Qwen3-8B"].versions["stable"].route_prefix == "/qwen-qwen3-8b"
    assert "qwen-qwen3-8b" in gateway["Qwen/Qwen3-8B"].versions["stable"].endpoints


def test_plan_shows_the_kubernetes_name_beside_the_name_of_clients() -> None:
    model = plan(f"{HEAD}  llama-3.1-8b: {{{QWEN}}}\n").models["llama-3.1-8b"]
    assert (model.served_as, model.application, model.service) == ("llama-3.1-8b", "llama-3-1-8b", "llama-3-1-8b")
    (shown,) = [reason for reason in model.reasons if reason.decision == "kubernetes_name"]
    assert shown.chosen == "llama-3-1-8b"


def test_models_are_refused_when_their_derived_names_collide() -> None:
    problem = the_problem(f"{HEAD}  llama-3-1-8b: {{{QWEN}}}\n  llama-3.1-8b: {{{QWEN}}}\n")
    assert (problem.path, problem.line) == ("models.llama-3.1-8b", 6)
    assert "its Kubernetes name is `llama-3-1-8b`, which is also the service of `llama-3-1-8b`" in problem.message
    assert problem.fix_text.startswith("service: llama-3-1-8b-2")


def test_models_of_one_service_are_refused_when_their_applications_collide() -> None:
    problem = the_problem(f"{HEAD}  A.b: {{{QWEN}, service: both}}\n  a-b: {{{QWEN}, service: both}}\n")
    assert "which is also the application in service `both` of `A.b`" in problem.message


@pytest.mark.parametrize("name", ["a//b", "../etc", "/a", "a/", "-a", "a b", "a" * 97, "'yes'"])
def test_model_is_refused_when_its_name_cannot_be_a_url_path(name: str) -> None:
    assert problems(f"{HEAD}  {name}: {{{QWEN}}}\n")


def test_fix_has_the_whole_name_of_a_model_whose_name_has_dots() -> None:
    problem = the_problem(f"{HEAD}  llama-3.1-8b: {{{QWEN}, slo: {{ttftt: 1s}}}}\n")
    assert problem.path == "models.llama-3.1-8b.slo.ttftt"
    assert problem.fix_text.startswith("ttft: 1s")
    document = parse_document(f"{HEAD}  llama-3.1-8b: {{{QWEN}}}\n", "fleet.yaml")
    elsewhere = document.problem(("models", "llama-3.1-8b", "slo", "ttft"), "", Fix("../../traffic.inputTokens", 5))
    assert elsewhere.fix_text == "models:\n  llama-3.1-8b:\n    traffic:\n      inputTokens: 5"


def test_another_model_can_be_served_as_a_model_whose_name_has_a_slash() -> None:
    fleet = read(f"{HEAD}  Qwen/Qwen3-8B: {{{QWEN}}}\n  next: {{{QWEN}, servedAs: {{model: Qwen/Qwen3-8B}}}}\n")
    assert fleet.application_of("next") == "qwen-qwen3-8b"
    assert fleet.service_of("next") == "next"
