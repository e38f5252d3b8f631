"""Models that were placed first give up GPUs that others need more."""

import pytest

from rayhelm.errors import FleetError
from rayhelm.planner.placement.candidates import evaluate_split
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.model_splits import ModelSplit
from rayhelm.planner.placement.resolve import ResolvedMemory
from rayhelm.planner.plan import Plan
from shared.fleets import plan

POOLS = """
  cheap: {gpu: L4-24GB, nodes: 1, price: 1 USD/h, nodeSelector: {pool: cheap}}
  small: {gpu: RTX-A4000-16GB, nodes: 1, price: 2 USD/h, nodeSelector: {pool: small}}
"""
DEAR = """
  dear: {gpu: H100-SXM-80GB, nodes: 1, price: 4 USD/h, nodeSelector: {pool: dear}}
"""
LARGER = "{source: Qwen/Qwen3-14B-AWQ, context: 4096}"
LONGER = "{source: Qwen/Qwen3-4B, context: 40960}"
"""Fewer weights, so it is placed second; its cache does not fit the small GPU."""


def fleet(pools: str, **models: str) -> str:
    return f"fleet: scarce\npools:{pools}models:\n" + "".join(f"  {name}: {text}\n" for name, text in models.items())


def pools_of(found: Plan) -> dict[str, str]:
    return {name: model.pool for name, model in found.models.items()}


def because(found: Plan, model: str) -> str:
    return next(reason.because for reason in found.models[model].reasons if reason.decision == "pool")


def test_two_models_cost_3_usd_where_one_by_one_they_would_cost_5() -> None:
    found = plan(fleet(POOLS + DEAR, larger=LARGER, longer=LONGER))
    assert pools_of(found) == {"larger": "small", "longer": "cheap"}
    assert found.price_per_hour == pytest.approx(3)


def test_moved_models_say_why_in_the_plan() -> None:
    found = plan(fleet(POOLS + DEAR, larger=LARGER, longer=LONGER))
    assert because(found, "larger") == (
        "chosen together with `longer`: 3.00 USD/h for all of them, in place of 5.00; one by one, `larger` would be on"
        " pool `cheap`, TP 1 x PP 1"
    )
    assert "chosen together with `larger`" in because(found, "longer")


def test_model_gets_room_where_another_one_can_move() -> None:
    found = plan(fleet(POOLS, larger=LARGER, longer=LONGER[:-1] + ", engine: {enforce_eager: false}}"))
    assert pools_of(found) == {"larger": "small", "longer": "cheap"}
    assert "placed one by one, they would not all have room" in because(found, "longer")


def test_models_that_never_fit_together_are_refused_with_a_fix() -> None:
    with pytest.raises(FleetError) as error:
        plan(fleet(POOLS, larger=LARGER, longer=LONGER, longest=LONGER))
    (problem,) = error.value.problems
    assert "has room for 0" in problem.message
    assert problem.fix


def test_refusal_names_two_pools_that_have_room_together() -> None:
    pools = """
  one: {gpu: H100-SXM-80GB, nodes: 1, price: 3 USD/h, nodeSelector: {pool: one}}
  two: {gpu: L40S-48GB, nodes: 4, price: 1 USD/h, nodeSelector: {pool: two}}
"""
    load = "traffic: {requestsPerSecond: %s, inputTokens: 1000, outputTokens: 200}"
    source = "source: Qwen/Qwen3-8B, context: 4096"
    with pytest.raises(FleetError) as error:
        plan(fleet(pools, chat=f"{{{source}, {load % 30}}}"))
    (problem,) = error.value.problems
    assert problem.fix_text.startswith("pools: [one, two]")
    joined = plan(fleet(pools, chat=f"{{{source}, pools: [one, two], {load % 30}}}"))
    assert pools_of(joined) == {"chat": "one", "chat-two": "two"}


def test_unknown_price_beside_known_ones_is_warned_of() -> None:
    pools = POOLS.replace("RTX-A4000-16GB", "B300-SXM-288GB").replace(", price: 2 USD/h", "")
    found = plan(fleet(pools, longer=LONGER))
    (warning,) = [text for text in found.warnings if "is unknown" in text]
    assert warning.startswith("pool `small`: the price of B300-SXM-288GB is unknown")
    assert not [text for text in plan(fleet(POOLS, longer=LONGER)).warnings if "is unknown" in text]


UNPRICED = "  dark: {gpu: L20-48GB, nodes: 40, nodeSelector: {pool: dark}}\n"
SEVERAL = """
  small: {gpu: RTX-4090-24GB, nodes: 40, nodeSelector: {pool: small}, price: 0.6 USD/h}
  large: {gpu: H100-SXM-80GB, nodes: 40, nodeSelector: {pool: large}, price: 6.88 USD/h}
"""
OBJECTIVES = "slo: {ttft: 1s, tpot: 50ms}, traffic: {requestsPerSecond: 20, inputTokens: 1000, outputTokens: 250}"


def test_pool_without_a_price_does_not_change_a_choice_by_price() -> None:
    chat = f"{{source: meta-llama/Llama-3.1-8B-Instruct, context: 8192, {OBJECTIVES}}}"
    known, found = (plan(fleet(pools, chat=chat)) for pools in (SEVERAL, SEVERAL + UNPRICED))
    assert found.models["chat"].price_per_hour == known.models["chat"].price_per_hour == pytest.approx(6.0)
    assert (found.models["chat"].gpu, found.models["chat"].gpus) == ("RTX-4090-24GB", 10)
    (reason,) = (each for each in found.models["chat"].reasons if each.decision == "pool")
    assert reason.because.startswith("lowest price")


def test_pool_without_a_price_serves_what_no_priced_pool_can() -> None:
    chat = f"{{source: meta-llama/Llama-3.1-8B-Instruct, context: 8192, {OBJECTIVES}}}"
    tiny = "  tiny: {gpu: RTX-2070-8GB, nodes: 4, nodeSelector: {pool: tiny}, price: 0.1 USD/h}\n"
    found = plan(fleet("\n" + tiny + UNPRICED, chat=chat)).models["chat"]
    assert (found.gpu, found.price_per_hour) == ("L20-48GB", None)


def test_pinned_pool_stays_when_moving_would_be_cheaper() -> None:
    found = plan(fleet(POOLS + DEAR, larger="{source: Qwen/Qwen3-14B-AWQ, context: 4096, pool: cheap}", longer=LONGER))
    assert pools_of(found) == {"larger": "cheap", "longer": "dear"}


def test_models_of_one_service_stay_on_one_cluster_when_they_move() -> None:
    text = fleet(POOLS + DEAR, larger=LARGER[:-1] + ", service: both}", longer=LONGER[:-1] + ", service: both}")
    other = text.replace("small: {", "small: {cluster: other, ").replace(
        "models:", "clusters: {main: {}, other: {}}\nmodels:"
    )
    found = plan(other)
    assert {model.cluster for model in found.models.values()} == {"main"}


def test_fleet_with_enough_gpus_keeps_the_placement_one_by_one() -> None:
    roomy = POOLS.replace("nodes: 1", "nodes: 2")
    found = plan(fleet(roomy + DEAR, larger=LARGER, longer=LONGER))
    assert pools_of(found) == {"larger": "cheap", "longer": "cheap"}
    assert "together" not in because(found, "larger") + because(found, "longer")


def test_models_of_one_service_share_a_gpu_across_pools() -> None:
    """A pod holds a whole GPU, so the rest of one that the service already holds costs nothing."""
    pools = """
  first: {gpu: L4-24GB, nodes: 1, price: 1 USD/h, nodeSelector: {pool: first}}
  second: {gpu: L40S-48GB, nodes: 1, price: 1.2 USD/h, nodeSelector: {pool: second}}
"""
    models = dict.fromkeys(("a", "b"), "{source: Qwen/Qwen3-0.6B, context: 2048, service: both}")
    found = plan(fleet(pools, **models))
    assert len(set(pools_of(found).values())) == 1


def test_limit_of_a_tenant_keeps_the_placement_one_by_one() -> None:
    """The cheaper placement splits a model over two GPUs, and its tenant may use one."""
    pools = """
  cheap: {gpu: L40S-48GB, nodes: 1, price: 1 USD/h, nodeSelector: {pool: cheap}}
  pair: {gpu: L4-24GB, nodes: 1, gpusPerNode: 2, price: 0.9 USD/h, nodeSelector: {pool: pair}}
"""
    longer = "{source: Qwen/Qwen3-32B-AWQ, context: 32768, parallelism: {tensor: 1, pipeline: 1}}"
    text = fleet(pools + DEAR, larger="{source: Qwen/Qwen3-14B, context: 4096, service: owned}", longer=longer)
    owner = "tenants: {team: {gpus: %s}}\nservices: {owned: {tenant: team}}\n"
    assert pools_of(plan(text + owner % 2)) == {"larger": "pair", "longer": "cheap"}
    assert pools_of(plan(text + owner % 1)) == {"larger": "cheap", "longer": "dear"}


def test_search_evaluates_only_candidates_that_a_better_placement_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[str] = []

    def count(model_spec: ResolvedModelSpec, split: ModelSplit, memory: ResolvedMemory) -> object:
        evaluated.append(model_spec.name)
        return evaluate_split(model_spec, split, memory)

    monkeypatch.setattr("rayhelm.planner.placement.options.evaluate_split", count)
    kinds = {"L4-24GB": 1, "L40S-48GB": 2, "A100-SXM-80GB": 3, "H100-SXM-80GB": 4, "H200-SXM-141GB": 5}
    pool = "  p{0}: {{gpu: {1}, nodes: {0}, gpusPerNode: 2, price: {0} USD/h, nodeSelector: {{p: p{0}}}}}\n"
    pools = "\n" + "".join(pool.format(price, gpu) for gpu, price in kinds.items())
    load = "traffic: {requestsPerSecond: 2, inputTokens: %s, outputTokens: 200}"
    models = {f"m{i}": f"{{source: Qwen/Qwen3-4B, context: 8192, {load % (1000 + i)}}}" for i in range(8)}
    assert plan(fleet(pools, **models)).models.keys() == models.keys()
    assert len(evaluated) <= 14 * len(models)  # 19 each without the cost of the other models of a group
