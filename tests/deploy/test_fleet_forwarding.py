"""Models that only other clusters of a fleet serve: which gateways answer for them, and what the plan states."""

from typing import Any

import pytest

from deploy.test_fleet_remotes import render_gateways
from rayhelm.cli.tenant_table import forwarded_names, joined_names
from rayhelm.deploy.charts.helm import template
from rayhelm.deploy.render.files import render_plan
from rayhelm.deploy.render.plan_page import plan_page
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.emit import select_changed
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.planner.plan import Plan
from rayhelm.planner.planner import plan_fleet
from rayhelm.run.rehearsal.external import remove_external
from rayhelm.run.rehearsal.without_gpus import StandInSet
from shared.fleets import load, plan
from shared.small_fleet import the_problem

REMOTE = "{%s: {certificateAuthority: {configMap: gateway-ca}, cidrs: [203.0.113.10/32]%s}}"
LOAD = ", traffic: {requestsPerSecond: 1, inputTokens: 500, outputTokens: 200}"
ADAPTER = ", adapters: {legal: {source: /models/legal}}"
NEXT = "  next: {source: Qwen/Qwen3-8B, context: 4096, pool: us, servedAs: {model: big, version: next, weight: 20}}\n"


def cluster(name: str, more: str = "") -> str:
    """A cluster; `more` are further keys of its gateway."""
    gateway = f"host: {name}.example.com, ingress: {{tlsSecret: tls}}, allowedClients: [web]{more}"
    return f"{name}: {{apiServer: {{cidrs: [10.0.0.1/32]}}, gateway: {{{gateway}}}}}"


def fleet(
    us: str = "", big: str = "", more: str = "", to_us: str = "", tenants: str = "a: {models: [chat, big]}"
) -> str:
    """Cluster `eu` serves `chat` and names `us`, which serves `big`; `us` and `asia` have further keys of gateways."""
    return f"""\
fleet: small
clusters:
  {cluster("eu", ", remotes: " + REMOTE % ("us", to_us))}
  {cluster("us", us)}
pools:
  eu: {{gpu: L4-24GB, nodes: 4, cluster: eu}}
  us: {{gpu: L4-24GB, nodes: 4, cluster: us}}
tenants: {{{tenants}}}
models:
  chat: {{source: Qwen/Qwen2.5-7B-Instruct, context: 4096, pool: eu}}
  big: {{source: Qwen/Qwen2.5-7B-Instruct, context: 4096, pool: us{big}}}
{more}"""


def with_asia(text: str, eu_names_asia: bool) -> str:
    """Add cluster `asia`, which serves `big` too."""
    asia = f"  {cluster('asia')}\npools:\n  asia: {{gpu: L4-24GB, nodes: 4, cluster: asia}}\n"
    text = text.replace("pools:\n", asia)
    if eu_names_asia:
        text = text.replace(
            "remotes: {us: {",
            "remotes: {asia: {certificateAuthority: {configMap: gateway-ca}, cidrs: [192.0.2.1/32]}, us: {",
        )
    return text


ALSO_IN_ASIA = (
    "  big-asia: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, pool: asia, replicas: 3, servedAs: {model: big}}\n"
)


def page(text: str) -> str:
    rendered = render_plan(plan_fleet(load(text)))
    return plan_page(rendered.plan, rendered.tenants, {})


# -- which gateways answer ---------------------------------------------------------------------------------------------


def test_gateway_forwards_the_models_of_a_cluster_that_it_names() -> None:
    values = render_gateways(fleet())
    eu, us = values["eu"], values["us"]
    assert eu.tenants["a"].models == ["chat", "big"]
    assert eu.models["big"].versions["stable"].endpoints == {}
    assert set(eu.models["chat"].versions["stable"].endpoints) == {"chat"}
    assert eu.remote_gateways["us"].models == {"big": ["stable"]}
    assert (set(us.models), us.tenants["a"].models, us.remote_gateways["eu"].models) == ({"big"}, ["big"], {})


def test_each_gateway_answers_for_every_model_when_both_name_the_other() -> None:
    values = render_gateways(fleet(us=", remotes: " + REMOTE % ("eu", "")))
    assert {name: set(each.models) for name, each in values.items()} == {
        "eu": {"chat", "big"},
        "us": {"chat", "big"},
    }
    assert values["eu"].remote_gateways["us"].models == {"big": ["stable"]}
    assert values["us"].remote_gateways["eu"].models == {"chat": ["stable"]}


def test_tenant_of_another_cluster_gets_keys_at_the_gateway_that_forwards() -> None:
    values = render_gateways(fleet(tenants="a: {models: [chat]}, b: {models: [big], requestsPerMinute: 77}"))["eu"]
    assert values.tenants["a"].models == ["chat"]
    assert (values.tenants["b"].models, values.tenants["b"].requests_per_minute) == (["big"], 77)
    assert values.tenants["b"].keys.secret_name == "gateway-keys-b"


def test_versions_of_a_forwarded_model_keep_their_weights() -> None:
    text = fleet(more=NEXT, tenants="a: {models: [chat, big], pinnedVersions: {big: next}}")
    eu = render_gateways(text)["eu"]
    assert {name: one.weight for name, one in eu.models["big"].versions.items()} == {"stable": 80, "next": 20}
    assert eu.remote_gateways["us"].models == {"big": ["stable", "next"]}
    assert eu.tenants["a"].pinned_versions == {"big": "next"}
    assert not any("which cluster `eu` does not have" in warning for warning in plan(text).warnings)


def test_weight_of_a_version_can_be_at_its_model_in_another_cluster() -> None:
    without = NEXT.replace(", weight: 20", "")
    in_asia = NEXT.replace("next:", "next-asia:").replace("pool: us", "pool: asia")
    text = fleet(us=", remotes: " + REMOTE % ("asia", ""), more=ALSO_IN_ASIA + without + in_asia)
    for gateway in render_gateways(with_asia(text, eu_names_asia=True)).values():
        assert {name: one.weight for name, one in gateway.models["big"].versions.items()} == {"stable": 80, "next": 20}


def test_adapter_and_aliases_of_a_forwarded_model_are_forwarded() -> None:
    text = fleet(big=f"{ADAPTER}, aliases: [large]", tenants="a: {models: [chat, big, legal]}")
    text = text.replace(
        "{apiServer: {cidrs: [10.0.0.1/32]}",
        "{apiServer: {cidrs: [10.0.0.1/32]}, image: {repository: example.com/ray, tag: a, includesRayhelm: true}",
    )
    eu = render_gateways(text)["eu"]
    assert eu.models["big"].aliases == ["large"]
    assert eu.models["legal"].versions["stable"].endpoints == {}
    assert eu.remote_gateways["us"].models == {"big": ["stable"], "legal": ["stable"]}


@pytest.mark.parametrize("names_asia", [True, False])
def test_forwarded_model_of_two_clusters_goes_to_those_that_are_named(names_asia: bool) -> None:
    text = with_asia(fleet(us=", remotes: " + REMOTE % ("asia", ""), more=ALSO_IN_ASIA), names_asia)
    values = render_gateways(text)
    eu = values["eu"].remote_gateways
    if names_asia:
        assert {name: one.models for name, one in eu.items()} == {
            "asia": {"big": ["stable"]},
            "us": {"big": ["stable"]},
        }
        assert {name: one.model_weights for name, one in eu.items()} == {"asia": {"big": 100}, "us": {"big": 33}}
    else:
        assert {name: one.models for name, one in eu.items()} == {"us": {"big": ["stable"]}}
    # `us` has endpoints of its own, and forwards on failures.
    assert set(values["us"].models["big"].versions["stable"].endpoints) == {"big"}
    assert values["us"].remote_gateways["asia"].models == {"big": ["stable"]}


def test_no_gateway_forwards_to_one_that_would_forward_again() -> None:
    """`eu` names `us`, `us` names `asia`, and only `asia` serves `far`."""
    far = "  far: {source: Qwen/Qwen3-8B, context: 4096, pool: asia}\n"
    tenants = "a: {models: [chat, big, far]}"
    text = with_asia(fleet(us=", remotes: " + REMOTE % ("asia", ""), more=far, tenants=tenants), eu_names_asia=False)
    values = render_gateways(text)
    assert set(values["eu"].models) == {"chat", "big"}
    assert values["us"].remote_gateways["asia"].models == {"far": ["stable"]}
    (warning,) = [each for each in plan(text).warnings if "does not answer for `far`" in each]
    assert "name `asia` in its `gateway.remotes`" in warning


def test_bound_of_a_model_of_two_clusters_is_not_that_of_a_third_gateway() -> None:
    text = with_asia(fleet(us=", remotes: " + REMOTE % ("asia", ""), big=", spillAbove: 9", more=ALSO_IN_ASIA), True)
    assert {name: each.models["big"].spill_above for name, each in render_gateways(text).items()} == {
        "asia": 0,
        "eu": 0,
        "us": 9,
    }


# -- models that stay --------------------------------------------------------------------------------------------------


def test_model_without_forwarding_is_answered_in_its_cluster_only() -> None:
    text = fleet(big=", forwarding: none")
    values = render_gateways(text)
    assert set(values["eu"].models) == {"chat"}
    assert set(values["us"].models) == {"big"}
    assert values["eu"].remote_gateways["us"].models == {}
    assert any("forwards nothing to cluster `us`" in warning for warning in plan(text).warnings)


def test_model_of_two_clusters_without_forwarding_stays_in_each() -> None:
    two = "  chat-us: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, pool: us, servedAs: {model: chat}}\n"
    text = fleet(more=two).replace("  chat: {", "  chat: {forwarding: none, ")
    values = render_gateways(text)
    assert all("chat" in each.models for each in values.values())
    assert values["eu"].remote_gateways["us"].models == {"big": ["stable"]}


def test_forwarding_is_a_setting_of_the_name() -> None:
    problem = the_problem(fleet(more=NEXT.replace("pool: us", "pool: us, forwarding: none")))
    assert problem.path == "models.next.forwarding"
    assert "it is a setting of the name `big`" in problem.message


def test_bound_without_forwarding_is_refused() -> None:
    two = "  chat-us: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, pool: us, servedAs: {model: chat}}\n"
    text = fleet(more=two).replace("  chat: {", "  chat: {forwarding: none, spillAbove: 9, ")
    problem = the_problem(text)
    assert (problem.path, problem.message) == (
        "models.chat.spillAbove",
        "`forwarding: none` forwards no request of the model",
    )


def test_further_pools_of_a_model_have_its_forwarding() -> None:
    text = fleet(big=", forwarding: none").replace("pool: us, forwarding", "pools: [us, us2], forwarding")
    text = text.replace(
        "tenants:", "  us2: {gpu: A100-SXM-80GB, nodes: 4, cluster: us, nodeSelector: {kind: big}}\ntenants:"
    )
    text = text.replace("us: {gpu: L4-24GB, nodes: 4", "us: {nodeSelector: {kind: small}, gpu: L4-24GB, nodes: 4")
    assert set(render_gateways(text)["eu"].models) == {"chat"}


# -- what the plan states ----------------------------------------------------------------------------------------------


def test_plan_states_where_a_model_is_served_and_the_way() -> None:
    text = fleet(big=LOAD, to_us=", latency: 80ms, pricePerGigabyte: 0.02 USD/GB")
    planned = plan(text)
    assert planned.gateways["eu"].forwarded == ("big",)
    # 400 bytes and 500 prompt tokens of 4 bytes there, 560 bytes and 200 events of 238 bytes back.
    price = planned.gateways["eu"].remotes["us"].price_per_million_requests["big"]
    assert price == pytest.approx(50_560 * 1e6 / 1e9 * 0.02)
    assert "| gateway | chat, big (forwarded to us) |" in page(text)
    assert "| big (all requests) | 80 ms | 0.02 | big 1.01 |" in page(text)
    assert list(forwarded_names(planned)) == [
        "big: the gateway of eu forwards every request to us (round trip 80 ms, traffic 0.02 USD/GB)"
    ]


def test_plan_states_an_unknown_way_as_unknown() -> None:
    planned: Plan = plan(fleet(more=NEXT))
    assert list(forwarded_names(planned)) == [
        "big: the gateway of eu forwards every request to us (round trip unknown, traffic unknown)"
    ]
    assert list(joined_names(planned)) == ["big: stable 80 % by big (100), next 20 % by next (100)"]


def test_prefix_cache_of_a_forwarded_model_is_a_row_of_its_cluster_only() -> None:
    text = fleet(tenants="a: {models: [chat, big]}, b: {models: [big]}")
    planned = plan(text)
    assert {name: set(each.prefix_caches) for name, each in planned.gateways.items()} == {"eu": set(), "us": {"big"}}


# -- charts and rehearsals ---------------------------------------------------------------------------------------------


def objects(values: GatewayValues) -> list[dict[str, Any]]:
    return template("gateway", "gateway", "gateway", select_changed(values))


def test_chart_allows_egress_to_the_remote_gateway_of_a_forwarded_model() -> None:
    (policy,) = [each for each in objects(render_gateways(fleet())["eu"]) if each["kind"] == "NetworkPolicy"]
    rules = policy["spec"]["egress"]
    assert {"ipBlock": {"cidr": "203.0.113.10/32"}} in [peer for rule in rules for peer in rule["to"]]


def test_gateway_sets_no_salt_for_a_forwarded_model() -> None:
    """The gateway of the serving cluster does, so this one needs no Secret for it."""
    text = fleet(tenants="a: {models: [chat, big]}, b: {models: [big]}")
    files = {
        name: next(each["data"] for each in objects(values) if each["kind"] == "ConfigMap")
        for name, values in render_gateways(text).items()
    }
    assert {name: "salt.lua" in each for name, each in files.items()} == {"eu": False, "us": True}


def test_rehearsal_leaves_forwarded_models_out() -> None:
    text = fleet(tenants="a: {models: [chat, big], maxOutputTokens: {big: 9}}, b: {models: [big]}")
    release = Release("gateway", "gateway", "gateway", "eu", render_gateways(text)["eu"], "", "", "1.36.0")
    found = remove_external(StandInSet((release,), (), (), {}))
    values = found.releases[0].values
    assert isinstance(values, GatewayValues)
    assert (set(values.models), set(values.tenants), values.tenants["a"].models) == ({"chat"}, {"a"}, ["chat"])
    assert "models that only other clusters serve are left out" in found.notes
    assert objects(values)
