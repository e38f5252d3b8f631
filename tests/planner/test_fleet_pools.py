"""Models with `pools`: replicas over several pools, under one name."""

from pathlib import Path

import pytest
import yaml

from rayhelm.deploy.compose.gateway import build_gateways
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.images.fleet_keys import list_image_keys
from rayhelm.deploy.render.releases import Release
from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.fleet.document import parse_document
from rayhelm.live.cost.planned import plan_costs
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.what_if import parse_changes, plan_changed
from shared.apply_fix import apply_fix, check_fixes
from shared.fleets import load, plan
from shared.small_fleet import problems

BASE = """\
fleet: two
pools:
  a: {gpu: L40S-48GB, nodes: 4, price: 1 USD/h}
  b: {gpu: RTX-A6000-48GB, nodes: 4, price: 0.8 USD/h}
models:
"""
CIDRS = "clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, gpuFeatureDiscovery: true}}\n"
TENANT = "tenants: {team: {models: [chat]}}\n"
LOAD = "traffic: {requestsPerSecond: %s, inputTokens: 1000, outputTokens: 200}"
SIX = "replicas: 6"


def fleet(keys: str, more: str = "", base: str = BASE) -> str:
    return f"{base}  chat: {{source: Qwen/Qwen3-8B, context: 4096, {keys}}}\n{more}"


def refuse(text: str) -> Problem:
    """The one problem of a fleet. Each of its fixes solves it."""
    with pytest.raises(FleetError) as error:
        plan(text)
    (problem,) = error.value.problems
    check_fixes(text, [problem], plan)
    return problem


def apply_first_fix(text: str, problem: Problem) -> Plan:
    assert isinstance(problem.fix, Fix)
    return plan(yaml.safe_dump(apply_fix(parse_document(text, "fleet.yaml"), problem.fix)))


def shapes(found: Plan) -> dict[str, tuple[str, int]]:
    return {name: (model.pool, model.replicas) for name, model in found.models.items()}


def carry(model: ModelPlan) -> float:
    """Requests/s that the replicas serve at full concurrency."""
    return (model.estimate.tokens_per_second or 0.0) / 200 * model.replicas


def test_replicas_that_no_pool_has_room_for_are_placed_on_two() -> None:
    found = plan(fleet(f"{SIX}, pools: [a, b]"))
    assert shapes(found) == {"chat": ("a", 4), "chat-b": ("b", 2)}
    assert found.price_per_hour == pytest.approx(4 * 1 + 2 * 0.8)


def test_refusal_without_pools_names_those_that_have_room_together() -> None:
    text = fleet(SIX)
    problem = refuse(text)
    assert str(problem.fix).startswith("pools: [b, a]   # these have room together: replicas 4 on `b` and 2 on `a`")
    assert shapes(apply_first_fix(text, problem)) == {"chat": ("b", 4), "chat-a": ("a", 2)}


def test_refusal_names_three_pools_where_two_have_too_few_gpus() -> None:
    base = BASE.replace("models", "  c: {gpu: L4-24GB, nodes: 4, price: 0.5 USD/h}\nmodels")
    text = fleet("replicas: 11", base=base)
    assert shapes(apply_first_fix(text, refuse(text))) == {"chat": ("b", 4), "chat-c": ("c", 4), "chat-a": ("a", 3)}


def test_load_is_divided_by_what_the_replicas_of_each_pool_serve() -> None:
    found = plan(fleet(f"{LOAD % 24}, pools: [a, b]"))
    first, second = found.models["chat"], found.models["chat-b"]
    assert (first.replicas, second.replicas) == (4, 2)
    assert first.load_share + second.load_share == pytest.approx(1)
    assert first.load_share / second.load_share == pytest.approx(carry(first) / carry(second), rel=1e-3)
    assert found.price_per_hour == pytest.approx(4 * 1 + 2 * 0.8)
    assert all(carry(model) > 24 * model.load_share for model in found.models.values())


def test_plan_says_which_part_each_pool_has() -> None:
    found = plan(fleet(f"{SIX}, pools: [a, b]")).models["chat-b"]
    because = next(reason.because for reason in found.reasons if reason.decision == "pool")
    assert "2 of 6 replicas" in because
    assert "`chat` has the others" in because
    assert "pools" in found.pinned


def test_clients_see_one_model_weighted_by_speed() -> None:
    text = fleet(f"{LOAD % 24}, pools: [a, b]", CIDRS + TENANT)
    found = plan(text)
    (gateway,) = build_gateways(found, build_ray_service_values(found)).values()
    assert list(gateway.models) == ["chat"]
    endpoints = gateway.models["chat"].versions["stable"].endpoints
    assert {name: endpoint.service for name, endpoint in endpoints.items()} == {"chat": "chat", "chat-b": "chat-b"}
    share = found.models["chat-b"].load_share / found.models["chat"].load_share
    assert found.gateways["main"].versions["chat"]["stable"].models == {"chat": 100, "chat-b": round(100 * share)}


def test_each_pool_has_a_replica_where_the_first_one_has_room_for_all() -> None:
    assert shapes(plan(fleet("replicas: 3, pools: [a, b]"))) == {"chat": ("a", 2), "chat-b": ("b", 1)}
    assert shapes(plan(fleet(f"{LOAD % 1}, pools: [a, b]"))) == {"chat": ("a", 1), "chat-b": ("b", 1)}
    assert shapes(plan(fleet("pools: [a, b]"))) == {"chat": ("a", 1), "chat-b": ("b", 1)}


def test_bursts_are_divided_with_the_load() -> None:
    burst = "traffic: {requestsPerSecond: 12, inputTokens: 1000, outputTokens: 200, burst: {dispersion: 30}}"
    found = plan(fleet(f"{burst}, pools: [a, b]"))
    peak = load(fleet(f"{burst}, pools: [a, b]")).fleet.models["chat"].traffic
    assert peak
    assert peak.peak_rate > 15
    planned = sum(0.75 * carry(model) for model in found.models.values())
    assert peak.peak_rate <= planned < peak.peak_rate + 0.75 * carry(found.models["chat"]) / 4


def test_spare_replicas_have_room_on_each_pool() -> None:
    found = plan(fleet(f"{LOAD % 20}, slo: {{capacityAvailability: 0.999}}, pools: [a, b]"))
    assert found.models["chat"].replicas == 4
    assert found.models["chat"].load_share * 20 / (0.75 * carry(found.models["chat"]) / 4) <= 3
    assert found.models["chat-b"].replicas <= 4


@pytest.mark.parametrize(
    "edit",
    [
        ("  b: {gpu: RTX-A6000-48GB, nodes: 4", "  b: {gpu: RTX-A6000-48GB, nodes: 6"),
        ("price: 0.8 USD/h", "price: 1.2 USD/h"),
        ("requestsPerSecond: 24", "requestsPerSecond: 24.2"),
        ("models:", "  c: {gpu: L4-24GB, nodes: 1, price: 0.5 USD/h}\nmodels:"),
        ("models:\n", "models:\n  other: {source: Qwen/Qwen3-4B, context: 4096}\n"),
    ],
)
def test_small_edit_leaves_the_replicas_of_each_pool(edit: tuple[str, str]) -> None:
    text = fleet(f"{LOAD % 24}, pools: [a, b]")
    assert edit[0] in text
    after = shapes(plan(text.replace(*edit)))
    assert {name: after[name] for name in ("chat", "chat-b")} == shapes(plan(text))


def test_second_pool_leaves_the_service_of_the_first_as_it_is() -> None:
    one, two = (plan(fleet(f"replicas: {count}, {key}")) for count, key in ((4, "pool: a"), (6, "pools: [a, b]")))
    same = {"reasons", "pinned", "load_share"}
    assert one.models["chat"].model_dump(exclude=same) == two.models["chat"].model_dump(exclude=same)


def test_service_of_a_further_pool_has_the_same_owner() -> None:
    more = f"{TENANT}services: {{chat: {{tenant: team, aliases: {{namespace: old, names: [chat-old]}}}}}}\n"
    declared = plan(fleet(f"{SIX}, pools: [a, b]", more)).declared
    assert declared.services_of("team") == ("chat", "chat-b")
    assert declared.services["chat-b"].aliases is None


def test_plan_names_the_paths_that_the_fleet_file_has() -> None:
    services = "services: {chat: {tenant: team, values: {test: {image: registry.example/probe:1}}}}\n"
    found = plan(fleet(f"{SIX}, pools: [a, b]", f"{CIDRS}{TENANT}{services}"))
    assert found.models["chat-b"].path == found.models["chat"].path == ("models", "chat")
    assert found.find_service_path("chat-b") == ("services", "chat")
    assert [each.part for each in found.overrides] == ["services.chat"]
    values = build_ray_service_values(found)["chat-b"]
    release = Release("ray-service", "chat-b", "team", "main", values, "chat", "chat-b.yaml", "1.36.0")
    paths = {key.path[:2] for key in list_image_keys(release, found) if key.path[0] == "services"}
    assert paths == {("services", "chat")}


def test_costs_and_alerts_have_the_load_once(tmp_path: Path) -> None:
    text = fleet(f"{LOAD % 24}, pools: [a, b]", CIDRS)
    (tmp_path / "fleet.yaml").write_text(text)
    costs = plan_costs(tmp_path / "fleet.yaml")
    assert sum(model.requests_per_second or 0 for each in costs.values() for model in each.models) == pytest.approx(24)


def test_what_if_changes_the_model_of_all_pools() -> None:
    loaded = load(fleet(f"{LOAD % 20}, pools: [a, b]"))
    found = plan_changed(loaded, parse_changes("chat.traffic=1.2x", loaded)).plan
    assert shapes(found) == shapes(plan(fleet(f"{LOAD % 24}, pools: [a, b]")))


def test_pools_with_too_few_gpus_together_are_refused_with_what_is_missing() -> None:
    problem = refuse(fleet("replicas: 11, pools: [a, b]"))
    assert problem.path == "models.chat.pools"
    assert "is planned for 11 replicas, and its `pools` have no room for 3 of them" in problem.message
    assert "pool `a` holds 4 with 1 L40S-48GB each (0 of 4 GPUs are used)" in problem.message
    assert str(problem.fix) == "nodes: 7   # 3 more nodes in pool `b`"


def test_pools_with_too_few_gpus_for_the_load_are_refused_in_requests() -> None:
    problem = refuse(fleet(f"{LOAD % 60}, pools: [a, b]"))
    assert "is planned for 60 requests/s, and its `pools` have no room for 28.2 of them" in problem.message
    assert problem.alternatives[-1].why == "the load that fits"


def test_pool_that_others_fill_is_refused_with_the_other_pools() -> None:
    other = "  large: {source: Qwen/Qwen3-14B, context: 4096, pool: b, replicas: 4}\n"
    problem = refuse(fleet("replicas: 3, pools: [a, b]", other))
    assert "a replica at least on each of its `pools`: pool `b` holds 0" in problem.message
    assert str(problem.fix).startswith("pool: a")


def test_pool_with_too_small_gpus_is_refused_by_its_name_in_the_file() -> None:
    text = fleet(f"{SIX}, pools: [a, b]").replace("RTX-A6000-48GB, nodes: 4", "T4-16GB, nodes: 1")
    text = text.replace("Qwen3-8B", "Qwen3-14B")
    problem = refuse(text)
    assert problem.path == "models.chat.pools"
    assert problem.line == text[: text.index("chat: {")].count("\n") + 1
    assert "model `chat` (Qwen/Qwen3-14B) does not fit in one of its `pools`. pool `b`" in problem.message


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("pools: [a, c]", "there is no pool `c`"),
        ("pools: [a, a]", "pool `a` is listed twice"),
        ("pools: [a]", "at least 2"),
        ("pools: [a, b], pool: a", "either `pool` or `pools`"),
        ("pools: [a, b], replicas: {min: 1, max: 6}", "bounds of autoscaling are not divided"),
        ("pools: [a, b], replicas: 1", "1 replicas are fewer than its 2 pools"),
        ("pools: [a, b], parallelism: {prefillDecode: true}", "not tested over several pools"),
        (
            "pools: [a, b], adapters: {law: {source: acme/law, revision: '%s'}}" % ("0" * 40),
            "the adapters of a model are on one pool",
        ),
    ],
)
def test_wrong_pools_are_refused_with_a_fix(keys: str, message: str) -> None:
    text = fleet(keys)
    found = problems(text)
    assert message in " ".join(str(problem) for problem in found)
    check_fixes(text, list(found), load)


def test_pools_of_different_clusters_are_refused() -> None:
    base = BASE.replace("nodes: 4, price: 0.8", "nodes: 4, cluster: other, price: 0.8").replace(
        "pools:", "clusters: {main: {}, other: {}}\npools:"
    )
    (problem,) = problems(fleet("pools: [a, b]", base=base))
    assert "different clusters: `a` in `main`, `b` in `other`" in problem.message


def test_pools_of_a_model_that_serves_another_name_are_refused() -> None:
    more = "  more: {source: Qwen/Qwen3-8B, context: 4096, pools: [a, b], servedAs: {model: chat}}\n"
    (problem,) = problems(fleet("pool: a", more))
    assert "a model with `servedAs` is on one pool" in problem.message


def test_name_of_a_further_pool_that_another_model_has_is_refused() -> None:
    (problem,) = problems(fleet("pools: [a, b]", "  chat-b: {source: Qwen/Qwen3-8B, context: 4096}\n"))
    assert "are the model `chat-b`, which is also another model, adapter or alias" in problem.message


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("  Chat-B: {source: Qwen/Qwen3-8B, context: 4096}\n", "whose service `chat-b` is also a service of the fleet"),
        (
            "  Chat: {source: Qwen/Qwen3-8B, context: 4096, service: other, pools: [a, b]}\n",
            "whose service `chat-b` is also that of model `Chat` on pool `b`",
        ),
    ],
)
def test_service_of_a_further_pool_that_is_used_is_refused(other: str, message: str) -> None:
    found = problems(fleet("pools: [a, b]", other))
    assert message in " ".join(problem.message for problem in found)


def test_name_of_a_further_pool_that_is_too_long_is_refused() -> None:
    with pytest.raises(FleetError, match="has 97 characters; the limit is 96"):
        load(fleet("pool: a", f"  {'x' * 95}: {{source: Qwen/Qwen3-8B, context: 4096, pools: [a, b]}}\n"))


def test_settings_of_the_name_warn_of_no_further_pool() -> None:
    reason = "sharedPrefixCacheReason: all tenants are one team"
    found = plan(
        fleet(f"{SIX}, pools: [a, b], {reason}", "tenants: {team: {models: [chat]}, more: {models: [chat]}}\n")
    )
    assert not [text for text in found.warnings if "sharedPrefixCacheReason" in text]
