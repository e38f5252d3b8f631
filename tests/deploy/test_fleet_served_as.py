"""Models that answer for others: other places of the same weights, and other versions, behind one name."""

from io import StringIO

import pytest
from rich.console import Console

from rayhelm.cli.tenant_table import build_tenant_table, joined_names
from rayhelm.cli.up import up_services
from rayhelm.deploy.compose.gateway import build_gateways
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.render.files import render_plan
from rayhelm.deploy.render.plan_page import plan_page
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.errors import FleetError
from rayhelm.planner.plan import Plan
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load, plan
from shared.small_fleet import problems, read, the_problem

BASE = """\
fleet: small
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, gpuFeatureDiscovery: true, gateway: {allowedClients: [web]}}}
pools:
  gpu: {gpu: L4-24GB, nodes: 4}
  big: {gpu: RTX-A6000-48GB, nodes: 4}
tenants: {a: {models: [chat]}}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, pool: gpu}
"""
PLACE = "  chat-big: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, pool: big, servedAs: {model: chat}}\n"
NEXT = "  chat-next: {source: Qwen/Qwen3-8B, context: 4096, servedAs: {model: chat, version: next, weight: 20}}\n"
LOAD = "traffic: {requestsPerSecond: 1, inputTokens: 500, outputTokens: 200}, "


def render_gateway(text: str) -> GatewayValues:
    planned = plan(text)
    (found,) = build_gateways(planned, build_ray_service_values(planned)).values()
    return found


# -- the fleet file ----------------------------------------------------------------------------------------------------


def test_served_as_gives_models_one_name() -> None:
    fleet = read(BASE + PLACE + NEXT)
    assert fleet.served_as("chat") == ("chat", "chat-big", "chat-next")
    assert [fleet.version_of(model) for model in fleet.models] == ["stable", "stable", "next"]
    assert fleet.tenants_allowed("chat-next") == ("a",)


@pytest.mark.parametrize(
    ("model", "path", "message", "fix"),
    [
        (
            "{source: Qwen/Qwen3-8B, servedAs: {model: chatt, version: v2}}",
            "models.other.servedAs.model",
            "there is no other model `chatt`",
            "chat",
        ),
        (
            "{source: Qwen/Qwen3-8B, servedAs: {model: other, version: v2}}",
            "models.other.servedAs.model",
            "there is no other model `other`",
            "",
        ),
        (
            "{source: BAAI/bge-m3, task: embed, servedAs: {model: chat, version: v2}}",
            "models.other.servedAs",
            "`other` has task `embed`, and `chat` has task `chat`",
            "remove `servedAs`",
        ),
        (
            "{source: Qwen/Qwen3-8B, servedAs: {model: chat, version: stable}}",
            "models.other.servedAs.version",
            "`stable` is the version of `chat` itself",
            "version: next",
        ),
        (
            "{source: Qwen/Qwen2.5-7B-Instruct, servedAs: {model: chat, weight: 20}}",
            "models.other.servedAs.weight",
            "`weight` needs `version`",
            "version: next",
        ),
        (
            "{source: Qwen/Qwen3-8B, servedAs: {model: chat}}",
            "models.other.servedAs",
            "its weights differ from those of `chat`",
            "servedAs: {model: chat, version: next, weight: 20}",
        ),
        (
            "{source: Qwen/Qwen3-8B, service: chat, servedAs: {model: chat, version: v2}}",
            "models.other.service",
            "`chat` already serves `chat` in service `chat`",
            "service: other",
        ),
        (
            "{source: Qwen/Qwen3-8B, servedAs: {model: chat, version: v2, weight: 101}}",
            "models.other.servedAs.weight",
            "100",
            "weight",
        ),
    ],
)
def test_wrong_served_as_is_refused(model: str, path: str, message: str, fix: str) -> None:
    problem = the_problem(BASE + f"  other: {model}\n")
    assert (problem.path, problem.line) == (path, 9)
    assert message in problem.message
    assert fix in str(problem.fix)


def test_served_as_of_a_served_model_is_refused() -> None:
    text = "  third: {source: Qwen/Qwen3-8B, servedAs: {model: chat-next, version: v3}}\n"
    problem = the_problem(BASE + NEXT + text)
    assert "`chat-next` is itself served as `chat`" in problem.message
    assert str(problem.fix) == "model: chat"


def test_version_weights_above_100_are_refused() -> None:
    text = "  third: {source: Qwen/Qwen3-8B, servedAs: {model: chat, version: v3, weight: 90}}\n"
    problem = the_problem(BASE + NEXT + text)
    assert problem.path == "models.third.servedAs.weight"
    assert "add up to 110 (next 20, v3 90)" in problem.message


def test_version_with_two_weights_is_refused() -> None:
    text = "  third: {source: Qwen/Qwen3-8B, servedAs: {model: chat, version: next, weight: 30}}\n"
    problem = the_problem(BASE + NEXT + text)
    assert (problem.path, str(problem.fix)) == (
        "models.third.servedAs.weight",
        "weight: 20   # write it at one model of the version",
    )


def test_served_name_on_two_clusters_is_refused() -> None:
    text = BASE.replace("clusters: {main:", "clusters: {edge: {}, main:").replace("gpu: RTX", "cluster: edge, gpu: RTX")
    problem = the_problem(text + PLACE)
    assert problem.path == "models.chat-big.pool"
    assert "the gateway of cluster `main` reaches only services of `main`" in problem.message


def test_service_and_served_names_share_one_cluster() -> None:
    """Of three models one is bound to the edge, one shares its service, and that one answers for the third."""
    clusters = "clusters: {edge: {apiServer: {cidrs: [10.0.0.1/32]}}, main:"
    text = BASE.replace("clusters: {main:", clusters).replace("gpu: RTX", "cluster: edge, gpu: RTX")
    text = text.replace("models: [chat]", "models: [chat, search]")
    search = "  search: {source: BAAI/bge-m3, task: embed, service: side%s}\n"
    beside = "  beside: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, service: side, servedAs: {model: chat}}\n"
    problem = the_problem(text + search % ", pool: big" + beside)
    assert (problem.path, "on cluster `edge`" in problem.message) == ("models.beside", True)
    assert {model.cluster for model in plan(text + search % "" + beside).models.values()} == {"main"}


def test_application_with_other_paths_than_its_served_model_is_refused() -> None:
    text = (
        BASE.replace("models: [chat]", "models: [chat, ocr]")
        + """\
  ocr: {source: a/b, task: custom, application: {importPath: "a:b", deployment: A, paths: {/v1/ocr: POST}}}
  new:
    source: a/c
    task: custom
    application: {importPath: "a:b", deployment: A, paths: {/v2/ocr: POST}}
    servedAs: {model: ocr, version: new}
"""
    )
    problem = the_problem(text)
    assert (problem.path, str(problem.fix)) == ("models.new.application", "paths: {/v1/ocr: POST}")


def test_tenant_with_a_model_that_is_served_as_another_is_refused() -> None:
    problem = the_problem(BASE.replace("models: [chat]", "models: [chat-next]") + NEXT)
    assert (problem.path, str(problem.fix)) == ("tenants.a.models[0]", "models: [chat]")


@pytest.mark.parametrize(
    ("pins", "message"),
    [
        ("{chat: nxt}", "`chat` has no version `nxt`"),
        ("{other: next}", "`a` may not call `other`"),
        ("{chat-next: next}", "clients call `chat-next` as `chat`"),
    ],
)
def test_pinned_version_that_does_not_exist_is_refused(pins: str, message: str) -> None:
    (problem,) = problems(BASE.replace("[chat]}", f"[chat], pinnedVersions: {pins}}}") + NEXT)
    assert problem.path.startswith("tenants.a.pinnedVersions.")
    assert message in problem.message


@pytest.mark.parametrize(
    "key", ["pinnedVersions: {gpt: stable}", "maxOutputTokens: {gpt: 5}", "maxBodyBytes: {gpt: 99}"]
)
def test_setting_of_an_alias_is_refused_with_that_of_its_model(key: str) -> None:
    image = "image: {repository: registry.example/ray-vllm, tag: 2.60.0-ours, includesRayhelm: true}"
    text = BASE.replace("[chat]}", f"[chat], {key}}}").replace("pool: gpu}", "pool: gpu, aliases: [gpt]}")
    text = text.replace("main: {", f"main: {{{image}, ")
    problem = the_problem(text)
    assert "`gpt` is an alias of `chat`" in problem.message
    right = key.replace("gpt", "chat")
    assert problem.fix_text.endswith(right)
    read(text.replace(key, right))


# -- the plan ----------------------------------------------------------------------------------------------------------


def shares(planned: Plan) -> dict[str, int]:
    return planned.gateways["main"].versions["chat"]["stable"].models


def test_different_placements_get_weights_by_capacity() -> None:
    text = (BASE + PLACE).replace("context: 4096, ", f"context: 4096, {LOAD}")
    found = shares(plan(text))
    assert found["chat-big"] == 100
    assert 1 <= found["chat"] < 100
    assert shares(plan(BASE + PLACE)) == {"chat": 100, "chat-big": 100}, "nothing is known of their speed under load"


def test_plan_warns_of_a_shorter_context_under_one_name() -> None:
    text = PLACE.replace("4096", "2048")
    assert any(
        "`chat-big` has a context of 2048 tokens and `chat` of 4096" in warning
        for warning in plan(BASE + text).warnings
    )


def test_model_is_planned_on_the_cluster_of_its_served_name() -> None:
    clusters = "clusters: {edge: {apiServer: {cidrs: [10.0.0.1/32]}}, main:"
    text = BASE.replace("clusters: {main:", clusters).replace("gpu: RTX", "cluster: edge, gpu: RTX")
    assert plan(text + NEXT).models["chat-next"].cluster == "main"
    with pytest.raises(FleetError):
        plan(text + NEXT.replace("Qwen/Qwen3-8B", "Qwen/Qwen2.5-72B-Instruct"))  # it fits on the other one alone


def test_plan_lists_the_models_of_a_served_name() -> None:
    assert list(joined_names(plan(BASE + PLACE + NEXT))) == [
        "chat: stable 80 % by chat (100) and chat-big (100), next 20 % by chat-next (100)"
    ]
    assert list(joined_names(plan(BASE))) == []


def test_plan_lists_pinned_versions_of_tenants() -> None:
    rendered = render_plan(plan_fleet(load(BASE.replace("[chat]}", "[chat], pinnedVersions: {chat: next}}") + NEXT)))
    assert "| a | chat (next) |" in plan_page(rendered.plan, rendered.tenants, {})
    shown = StringIO()
    Console(width=200, file=shown).print(build_tenant_table(rendered.plan))
    assert "chat (next)" in shown.getvalue()


# -- the values --------------------------------------------------------------------------------------------------------


def test_gateway_values_join_versions_under_one_name() -> None:
    (name,), (model,) = zip(*render_gateway(BASE + PLACE + NEXT).models.items(), strict=True)
    assert name == "chat"
    assert {version: found.weight for version, found in model.versions.items()} == {"stable": 80, "next": 20}
    assert set(model.versions["stable"].endpoints) == {"chat", "chat-big"}
    assert set(model.versions["next"].endpoints) == {"chat-next"}


def test_rollback_changes_one_weight() -> None:
    model = render_gateway(BASE + NEXT.replace("weight: 20", "weight: 0")).models["chat"]
    assert {version: found.weight for version, found in model.versions.items()} == {"stable": 100, "next": 0}


def test_gateway_values_have_the_pinned_version() -> None:
    text = BASE.replace("[chat]}", "[chat], pinnedVersions: {chat: next}}")
    assert render_gateway(text + NEXT).tenants["a"].pinned_versions == {"chat": "next"}


def test_services_serve_the_name_that_clients_send() -> None:
    text = BASE + PLACE + NEXT
    values = build_ray_service_values(plan(text))
    for service in ("chat", "chat-big", "chat-next"):
        assert {name: list(found.models) for name, found in values[service].serve.applications.items()} == {
            "chat": ["chat"]
        }


# -- on this computer --------------------------------------------------------------------------------------------------


def test_up_skips_models_served_as_one_that_it_serves(capsys: pytest.CaptureFixture[str]) -> None:
    rendered = render_plan(plan_fleet(load(BASE + PLACE + NEXT)))
    assert up_services(rendered, None) == ["chat"]
    assert "chat-next: left out: it serves chat" in capsys.readouterr().err
    assert up_services(rendered, "chat-next") == ["chat-next"]
