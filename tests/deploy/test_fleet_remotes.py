"""Models that several clusters of a fleet serve under one name: `gateway.remotes`, their plan and their values."""

import re
from pathlib import Path

import pytest
import yaml

from rayhelm.deploy.compose.gateway import build_gateways
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.render.files import render_plan
from rayhelm.deploy.render.plan_page import plan_page
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.errors import FleetError
from rayhelm.fleet.document import parse_document
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import apply_fix
from shared.fleets import load, plan
from shared.small_fleet import problems, the_problem

REMOTE = "{certificateAuthority: {configMap: gateway-ca}, cidrs: [203.0.113.10/32]%s}"
TO_US = ", remotes: {us: " + REMOTE % "" + "}"
LOAD = "traffic: {requestsPerSecond: 1, inputTokens: 500, outputTokens: 200}"
CANARY = "  next: {source: Qwen/Qwen3-8B, context: 4096, pool: us, servedAs: {model: chat, version: next}}\n"
ROUTE = "host: %s.example.com, ingress: {tlsSecret: tls}, allowedClients: [web]"


def fleet(eu: str = TO_US, us: str = "", chat: str = "pool: eu, ", chat_us: str = "pool: us, ", more: str = "") -> str:
    """A fleet of two clusters; `eu` and `us` are further keys of their gateways."""
    return f"""\
fleet: small
clusters:
  eu: {{apiServer: {{cidrs: [10.0.0.1/32]}}, gateway: {{{ROUTE % "eu"}{eu}}}}}
  us: {{apiServer: {{cidrs: [10.0.0.1/32]}}, gateway: {{{ROUTE % "us"}{us}}}}}
pools:
  eu: {{gpu: L4-24GB, nodes: 4, cluster: eu}}
  us: {{gpu: L4-24GB, nodes: 4, cluster: us}}
tenants: {{a: {{models: [chat]}}}}
models:
  chat: {{{chat}source: Qwen/Qwen2.5-7B-Instruct, context: 4096}}
  chat-us: {{{chat_us}source: Qwen/Qwen2.5-7B-Instruct, context: 4096, servedAs: {{model: chat}}}}
{more}"""


def render_gateways(text: str) -> dict[str, GatewayValues]:
    planned = plan(text)
    return build_gateways(planned, build_ray_service_values(planned))


def test_two_clusters_serve_one_name() -> None:
    values = render_gateways(fleet())
    assert {name: set(found.models["chat"].versions["stable"].endpoints) for name, found in values.items()} == {
        "eu": {"chat"},
        "us": {"chat-us"},
    }
    forwards = values["eu"].remote_gateways["us"]
    assert (forwards.host, forwards.models, forwards.cidrs) == (
        "us.example.com",
        {"chat": ["stable"]},
        ["203.0.113.10/32"],
    )
    accepts = values["us"].remote_gateways["eu"]
    assert (accepts.secret_name, accepts.models, accepts.host) == ("gateway-remote-eu", {}, "")


def test_gateway_of_another_fleet_is_an_override_beside_those_of_the_plan() -> None:
    asia = (
        ", values: {remoteGateways: {asia: {host: asia.example.com, secretName: asia, cidrs: [192.0.2.1/32], models:"
        " {chat: [stable]}, certificateAuthority: {configMapName: ca}}}, models: {chat: {spillAbove: 9}}}"
    )
    values = render_gateways(fleet(TO_US + asia))["eu"]
    assert set(values.remote_gateways) == {"us", "asia"}
    assert values.models["chat"].spill_above == 9


def test_override_of_a_planned_remote_is_refused() -> None:
    other = ", values: {remoteGateways: {us: {host: other.example.com}}}"
    with pytest.raises(FleetError) as caught:
        render_gateways(fleet(TO_US + other))
    (problem,) = caught.value.problems
    assert "clusters.eu.gateway.remotes" in str(problem)


def test_each_cluster_forwards_when_both_name_the_other() -> None:
    to_eu = ", remotes: {eu: " + REMOTE % ", secret: way-to-eu, port: 8443, serverName: inner.example.com" + "}"
    values = render_gateways(fleet(us=to_eu))
    found = values["us"].remote_gateways["eu"]
    assert (found.secret_name, found.port, found.server_name) == ("way-to-eu", 8443, "inner.example.com")
    assert values["eu"].remote_gateways["us"].models == found.models == {"chat": ["stable"]}


def test_model_without_pool_stays_with_the_model_of_its_name() -> None:
    third = "  third: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, servedAs: {model: chat}}\n"
    assert plan(fleet(more=third)).models["third"].cluster == "eu"


def test_version_of_one_cluster_gets_its_weight_there_alone() -> None:
    canary = (
        "  next: {source: Qwen/Qwen3-8B, context: 4096, pool: us, servedAs: {model: chat, version: next, weight: 20}}\n"
    )
    values = render_gateways(fleet(more=canary))
    weights = {
        name: {version: one.weight for version, one in found.models["chat"].versions.items()}
        for name, found in values.items()
    }
    assert weights == {"eu": {"stable": 100}, "us": {"stable": 80, "next": 20}}
    assert values["eu"].remote_gateways["us"].models == {"chat": ["stable"]}


def test_pinned_version_holds_where_it_exists_and_is_warned_of_elsewhere() -> None:
    text = fleet(more=CANARY).replace("[chat]}", "[chat], pinnedVersions: {chat: next}}")
    pinned = {name: found.tenants["a"].pinned_versions for name, found in render_gateways(text).items()}
    assert pinned == {"eu": {}, "us": {"chat": "next"}}
    assert any("which cluster `eu` does not have" in warning for warning in plan(text).warnings)


# -- the way -----------------------------------------------------------------------------------------------------------


def test_plan_states_latency_and_price_of_the_way() -> None:
    way = ", latency: 80ms, pricePerGigabyte: 0.02 USD/GB"
    text = fleet(", remotes: {us: " + REMOTE % way + "}", chat=f"pool: eu, {LOAD}, ")
    found = plan(text).gateways["eu"].remotes["us"]
    assert (found.latency_s, found.price_per_gigabyte, found.unknown) == (0.08, 0.02, ())
    # 400 bytes and 500 prompt tokens of 4 bytes there, 560 bytes and 200 events of 238 bytes back.
    assert found.price_per_million_requests["chat"] == pytest.approx(50_560 * 1e6 / 1e9 * 0.02)
    assert "| eu | us | us.example.com | 1 | - | chat | 80 ms | 0.02 |" in page(text)


def test_plan_gives_the_reason_of_unknown_figures_of_the_way() -> None:
    text = fleet()
    found = plan(text).gateways["eu"].remotes["us"]
    assert (found.latency_s, found.price_per_gigabyte, found.price_per_million_requests) == (None, None, {"chat": None})
    assert [each.partition(":")[0] for each in found.unknown] == [
        "latency",
        "price of the traffic",
        "bytes of a request to `chat`",
    ]
    assert "> **Unknown** on the way from `eu` to `us`: latency: `latency` is not set" in page(text)


def page(text: str) -> str:
    rendered = render_plan(plan_fleet(load(text)))
    return plan_page(rendered.plan, rendered.tenants, {})


def three_clusters(asia: str, us: str, more: str = "", chat_asia: str = "pool: asia", load: str = "") -> str:
    """A fleet whose cluster `eu` forwards to `asia` and `us`; the first two are further keys of the remotes."""
    third = (
        "  asia: {apiServer: {cidrs: [10.0.0.1/32]}, gateway: {host: asia.example.com, ingress: {tlsSecret: tls},"
        " allowedClients: [web]}}\n"
    )
    remotes = ", remotes: {asia: " + REMOTE % asia + ", us: " + REMOTE % us + "}"
    text = fleet(remotes, chat=f"pool: eu, {load}", chat_us=f"pool: us, {load}", more=more)
    text = text.replace("pools:\n", third + "pools:\n  asia: {gpu: L4-24GB, nodes: 4, cluster: asia}\n")
    asia_model = f"{chat_asia}, {load}source: Qwen/Qwen2.5-7B-Instruct, context: 4096, servedAs: {{model: chat}}"
    return text + f"  chat-asia: {{{asia_model}}}\n"


def test_nearest_remote_gets_requests_first() -> None:
    text = three_clusters(", latency: 200ms", ", latency: 80ms")
    found = render_gateways(text)["eu"].remote_gateways
    assert {name: one.priority for name, one in found.items()} == {"us": 1, "asia": 2}
    assert {name: one.model_weights for name, one in found.items()} == {"us": {}, "asia": {}}


# -- shares ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("latency", ["", ", latency: 80ms", ", priority: 3"], ids=["unknown", "equal", "pinned"])
def test_remotes_of_one_priority_share_requests_by_planned_tokens(latency: str) -> None:
    text = three_clusters(latency, latency, chat_asia="pool: asia, replicas: 4", load=f"{LOAD}, ")
    planned, found = plan(text), render_gateways(text)["eu"].remote_gateways
    rates = {
        name: planned.models[f"chat-{name}"].max_replicas
        * (planned.models[f"chat-{name}"].estimate.tokens_per_second or 0)
        for name in ("us", "asia")
    }
    assert rates["asia"] > rates["us"] > 0
    assert len({one.priority for one in found.values()}) == 1
    assert {name: one.model_weights for name, one in found.items()} == {
        "asia": {"chat": 100},
        "us": {"chat": round(100 * rates["us"] / rates["asia"])},
    }
    assert f"| chat 100 ({rates['asia']:.4g} tokens/s) | chat |" in page(text)


def test_remotes_share_by_planned_requests_without_an_estimate() -> None:
    text = three_clusters("", "", chat_asia="pool: asia, replicas: 3")
    planned, found = plan(text), plan(text).gateways["eu"].remotes
    assert not any(planned.models[f"chat-{name}"].estimate.tokens_per_second for name in found)
    assert found["asia"].weights == {"chat": 100}
    assert found["us"].weights == {"chat": 33}
    each = planned.models["chat-asia"].target_ongoing_requests
    assert found["asia"].weight_reasons == {"chat": f"{3 * each} requests in flight"}


def test_pinned_weights_of_remotes_are_rendered() -> None:
    text = three_clusters(", weight: 30", ", weight: 70")
    found = render_gateways(text)["eu"].remote_gateways
    assert {name: one.model_weights for name, one in found.items()} == {"asia": {"chat": 30}, "us": {"chat": 70}}
    assert "| chat 30 (pinned) | chat |" in page(text)


def test_remotes_without_a_model_in_common_have_no_weights() -> None:
    text = three_clusters("", "").replace(", servedAs: {model: chat}", "")
    text = text.replace("a: {models: [chat]}", "a: {models: [chat, chat-us, chat-asia]}")
    assert all(not one.weights for one in plan(text).gateways["eu"].remotes.values())


@pytest.mark.parametrize(
    ("asia", "us", "message", "line"),
    [
        (
            ", latency: 200ms, weight: 5",
            ", latency: 80ms",
            "no other remote gateway of cluster `eu` has the priority 2",
            3,
        ),
        (", weight: 5", "", "remote gateway `us` has the same priority and no `weight`", 3),
    ],
    ids=["alone", "half"],
)
def test_weight_without_its_counterpart_is_refused(asia: str, us: str, message: str, line: int) -> None:
    (problem,) = problems(three_clusters(asia, us))
    assert (problem.path, problem.line) == ("clusters.eu.gateway.remotes.asia.weight", line)
    assert message in problem.message


def test_fix_of_a_missing_weight_names_the_key_of_the_other_remote() -> None:
    text = three_clusters(", weight: 5", "")
    (problem,) = problems(text)
    assert [fix.path for fix in problem.alternatives] == ["clusters.eu.gateway.remotes.us.weight"]
    assert "# or, at clusters.eu.gateway.remotes.us: weight: 100" in str(problem)
    fixed = yaml.safe_dump(apply_fix(parse_document(text, ""), problem.alternatives[0]), sort_keys=False)
    assert render_gateways(fixed)["eu"].remote_gateways["us"].model_weights == {"chat": 100}


def test_weight_out_of_range_is_refused() -> None:
    (problem,) = problems(three_clusters(", weight: 0", ", weight: 300"))[:1]
    assert problem.path == "clusters.eu.gateway.remotes.asia.weight"


def test_example_of_the_documentation_plans() -> None:
    page = Path(__file__).parents[2] / "docs/tasks/join-clusters.md"
    example = re.findall(r"```yaml\n(fleet: .*?)```", page.read_text(), re.DOTALL)[0]
    values = render_gateways(example)
    assert {name: one.remote_gateways.keys() for name, one in values.items()} == {"eu": {"us"}, "us": {"eu"}}
    assert all(one.models["chat"].spill_above > 1 for one in values.values())


# -- spill -------------------------------------------------------------------------------------------------------------


def test_planned_bound_is_the_capacity_of_the_replicas_of_each_cluster() -> None:
    to_eu = ", replicas: 3, remotes: {eu: " + REMOTE % "" + "}"
    text = fleet(us=to_eu, chat=f"pool: eu, spillAbove: planned, {LOAD}, ", chat_us="pool: us, replicas: 3, ")
    planned, values = plan(text), render_gateways(text)
    here, there = planned.models["chat"], planned.models["chat-us"]
    assert values["eu"].models["chat"].spill_above == -(-here.target_ongoing_requests * here.max_replicas // 2)
    assert values["us"].models["chat"].spill_above == there.target_ongoing_requests


def test_cluster_that_forwards_nothing_has_no_bound() -> None:
    values = render_gateways(fleet(chat="pool: eu, spillAbove: 40, "))
    assert {name: found.models["chat"].spill_above for name, found in values.items()} == {"eu": 40, "us": 0}


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "remote", "path", "message", "fix"),
    [
        ("eu", REMOTE, "eu", "cluster `eu` names itself", "remove `eu`"),
        ("usa", REMOTE, "usa", "there is no cluster `usa` in this fleet", "us: "),
        ("us", REMOTE % ", host: eu.example.com", "us", "the host of cluster `eu` itself", "host: us.example.com"),
        ("us", REMOTE % ", latency: 80", "us.latency", "has no unit", "80ms"),
        ("us", REMOTE % ", pricePerGigabyte: 0.02", "us.pricePerGigabyte", "has no unit", "0.02 USD/GB"),
        (
            "us",
            "{certificateAuthority: {}, cidrs: [203.0.113.10/32]}",
            "us.certificateAuthority",
            "exactly one of",
            "gateway-ca",
        ),
        ("us", "{certificateAuthority: {configMap: ca}, cidrs: []}", "us.cidrs", "at least 1", "203.0.113.10/32"),
        ("us", "{cidrs: [203.0.113.10/32]}", "us.certificateAuthority", "missing", "gateway-ca"),
    ],
)
def test_wrong_remote_is_refused(name: str, remote: str, path: str, message: str, fix: str) -> None:
    text = fleet(f", remotes: {{{name}: {remote.replace('%s', '')}}}")
    found = [one for one in problems(text) if ".remotes." in one.path]
    assert [one.path for one in found] == [f"clusters.eu.gateway.remotes.{path}"]
    assert message in found[0].message
    assert fix in str(found[0].fix)


def test_remote_without_a_host_is_refused() -> None:
    text = fleet().replace("gateway: {host: us.example.com, ingress: {tlsSecret: tls}, ", "gateway: {")
    problem = the_problem(text)
    assert problem.path == "clusters.eu.gateway.remotes.us"
    assert "cluster `us` has no `gateway.host`" in problem.message


def test_two_remotes_with_one_host_are_refused() -> None:
    third = "  asia: {apiServer: {cidrs: [10.0.0.1/32]}, gateway: {}}\n"
    remotes = ", remotes: {asia: " + REMOTE % ", host: us.example.com" + ", us: " + REMOTE % "" + "}"
    problem = the_problem(fleet(remotes).replace("pools:\n", f"{third}pools:\n"))
    assert "cluster `asia` has the host `us.example.com` too" in problem.message


def test_one_name_on_clusters_that_are_not_joined_is_refused() -> None:
    problem = the_problem(fleet(eu=""))
    assert problem.path == "models.chat-us.pool"
    assert "join the gateways by `gateway.remotes`" in problem.message
    assert [str(fix.path) for fix in problem.alternatives] == ["clusters.eu.gateway.remotes"]
    assert "# or, at clusters.eu.gateway: remotes: {us: " in str(problem)


def test_name_of_two_clusters_needs_a_pool_of_its_own() -> None:
    more = "  chat-eu: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, pool: eu, servedAs: {model: chat}}\n"
    problem = the_problem(fleet(chat="", more=more))
    assert (problem.path, "`chat` itself needs a `pool`" in problem.message) == ("models.chat", True)


def test_cluster_without_the_stable_version_is_refused() -> None:
    text = fleet().replace("servedAs: {model: chat}", "servedAs: {model: chat, version: next}")
    problem = the_problem(text)
    assert problem.path == "models.chat-us.servedAs.version"
    assert "cluster `us` has no version `stable` of `chat`" in problem.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (fleet(chat_us="pool: us, spillAbove: 5, "), "it is a setting of the name `chat`"),
        (fleet(chat_us="pool: eu, ", chat="pool: eu, spillAbove: 5, "), "no other cluster serves `chat`"),
    ],
)
def test_bound_without_effect_is_refused(text: str, message: str) -> None:
    assert message in the_problem(text).message


def test_unknown_cluster_of_a_pool_is_refused_beside_a_name_of_two_clusters() -> None:
    text = fleet().replace("nodes: 4, cluster: us", "nodes: 4, cluster: asia")
    assert any("asia" in problem.message for problem in problems(text))
