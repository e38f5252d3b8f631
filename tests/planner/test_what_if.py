"""`rayhelm plan --what-if` and `--alternatives`: other plans and shapes beside the planned one."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rayhelm.errors import FleetError, UsageError
from rayhelm.fleet.load import load_fleet
from rayhelm.planner.alternatives import Alternative, list_alternatives
from rayhelm.planner.plan import Plan
from rayhelm.planner.planner import plan_fleet
from rayhelm.planner.what_if import parse_changes, plan_changed
from shared.command import run
from shared.fleets import load

VALUES = Path(__file__).parents[2] / "values"

FLEET = """
fleet: compared
clusters: {main: {gpuFeatureDiscovery: true}}
pools:
  main: {gpu: H100-SXM-80GB, nodes: 4, gpusPerNode: 8, network: ethernet-100g, price: 3 USD/h}
  small: {gpu: L4-24GB, nodes: 8, price: 0.7 USD/h}
models:
  chat:
    source: Qwen/Qwen3-32B
    context: 8192
    traffic: {requestsPerSecond: 3, inputTokens: 1000, outputTokens: 200}
  draft: {source: Qwen/Qwen3-0.6B, context: 4096}
"""

PINNED = """
  many:
    source: Qwen/Qwen3-4B
    pool: small
    context: 4096
    traffic: {requestsPerSecond: 1, inputTokens: 500, outputTokens: 100}
"""
LIMITED = """
fleet: limited
clusters: {main: {gpuFeatureDiscovery: true}}
pools:
  p4d: {gpu: A100-SXM-40GB, nodes: 1, gpusPerNode: 7}
models:
  chat:
    source: Qwen/Qwen2.5-7B-Instruct
    context: 8192
    traffic: {requestsPerSecond: 11, inputTokens: 30, outputTokens: 64}
    slo: {ttft: 500ms, tpot: 30ms}
    replicas: {min: 1, max: 4}
"""


def change(text: str, fleet: str = FLEET) -> Plan:
    loaded = load(fleet)
    return plan_changed(loaded, parse_changes(text, loaded)).plan


def alternatives(fleet: str = FLEET) -> dict[str, list[Alternative]]:
    loaded = load(fleet)
    return list_alternatives(plan_fleet(loaded))


@pytest.fixture
def show_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Run `rayhelm plan` with options, and return what it prints."""
    file = tmp_path / "fleet.yaml"
    file.write_text(FLEET)
    return lambda *options: run(capsys, monkeypatch, "plan", str(file), *options).out


def test_more_traffic_needs_more_replicas() -> None:
    assert change("traffic=8x").models["chat"].replicas > change("traffic=1x").models["chat"].replicas


def test_stricter_objective_needs_more_gpus() -> None:
    assert change("chat.tpot=12ms").models["chat"].gpus > change("chat.tpot=200ms").models["chat"].gpus


def test_change_of_one_model_leaves_the_others() -> None:
    found = change("chat.source=Qwen/Qwen3-32B-FP8")
    assert found.models["chat"].source == "Qwen/Qwen3-32B-FP8"
    assert found.models["draft"].source == "Qwen/Qwen3-0.6B"


def test_other_gpu_has_the_price_of_the_catalog() -> None:
    found = change("main.gpu=H200-SXM-141GB").models["chat"]
    assert found.gpu == "H200-SXM-141GB"
    assert any("on demand" in reason.because for reason in found.reasons if reason.decision == "price_per_hour")


def test_ambiguous_gpu_is_planned_with_a_warning_that_names_the_board() -> None:
    found = change("main.gpu=H100")
    assert found.models["chat"].gpu == "H100-SXM-80GB"
    (warning,) = [text for text in found.warnings if "pool `main`" in text]
    assert "GPU H100 is read as H100-SXM-80GB; it could also be H100-NVL-94GB" in warning


def test_one_gpu_for_all_pools_is_planned_although_no_label_distinguishes_them() -> None:
    assert {model.gpu for model in change("gpu=H200-SXM-141GB").models.values()} == {"H200-SXM-141GB"}


def test_nodes_price_and_sequences_can_change_together() -> None:
    found = change("main.nodes=2x,small.price=9,chat.maxNumSeqs=64")
    assert found.pools["main"].gpus == 64
    assert found.models["chat"].max_num_seqs == 64


def test_change_leaves_the_loaded_fleet_as_it_is() -> None:
    loaded = load(FLEET)
    before = plan_fleet(loaded)
    plan_changed(loaded, parse_changes("traffic=2x,gpu=H200-SXM-141GB,nodes=9", loaded))
    assert plan_fleet(loaded) == before


def test_fleet_without_a_plan_names_the_change() -> None:
    with pytest.raises(
        FleetError, match=r"with --what-if chat\.source=deepseek-ai/DeepSeek-R1,main\.nodes=1: model `chat`"
    ):
        change("chat.source=deepseek-ai/DeepSeek-R1,main.nodes=1")


def test_load_without_room_names_missing_nodes_and_their_cost() -> None:
    loaded = load(FLEET)
    found = plan_changed(loaded, parse_changes("chat.traffic=900x", loaded))
    (added,) = found.nodes
    pool = found.plan.pools[added.pool]
    assert pool.used <= pool.gpus == plan_fleet(loaded).pools[added.pool].gpus + added.gpus
    assert added.usd_per_hour == pytest.approx(added.gpus * {"main": 3.0, "small": 0.7}[added.pool])
    assert f"pool `{added.pool}` lacks {added.nodes} nodes with {added.gpus} GPUs in all" in str(added)


def test_missing_nodes_of_unlike_hosts_are_like_the_others() -> None:
    hosts = "{hosts: [{gpu: L4-24GB, nodeSelector: {a: b}}, {gpu: L4-24GB, nodeSelector: {a: c}}]}"
    loaded = load(FLEET.replace("{gpu: L4-24GB, nodes: 8, price: 0.7 USD/h}", hosts) + PINNED)
    (added,) = plan_changed(loaded, parse_changes("many.traffic=40x", loaded)).nodes
    assert (added.pool, added.of) == ("small", 2)
    assert added.nodes == added.gpus > 0


def test_missing_gpus_of_a_tenant_are_named() -> None:
    tenant = "tenants: {team: {gpus: 5}}\nservices: {chat: {tenant: team}, draft: {tenant: team}}\n"
    loaded = load(FLEET + tenant)
    found = plan_changed(loaded, parse_changes("chat.traffic=8x", loaded))
    (raised,) = found.limits
    assert raised.gpus > raised.of == 5
    assert str(raised) in found.added


def test_replica_has_fewer_gpus_where_its_maximum_has_no_room_with_more() -> None:
    """TP 2 carries the load with one replica and decodes faster, but four of its replicas have no room."""
    found = change("traffic=10x", LIMITED).models["chat"]
    assert (found.shape.tp, found.max_replicas) == (1, 4)
    assert change("traffic=10x", LIMITED.replace("max: 4", "max: 3")).models["chat"].shape.tp == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty. Allowed"),
        ("traffic", "is not KEY=VALUE. Allowed"),
        ("traffics=2x", "did you mean `traffic`"),
        ("color=red", "unknown key `color`. Allowed"),
        ("traffic=2", "a factor from above 0x to 1000x"),
        ("traffic=0x", "a factor from above 0x to 1000x"),
        ("draft.traffic=2x", "model `draft` has no `traffic`"),
        ("missing.traffic=2x", "no model is called `missing`; there are chat, draft"),
        ("chat.gpu=L4-24GB", "no pool is called `chat`; there are main, small"),
        ("gpu=H2000", "unknown GPU 'H2000'; near: H200"),
        ("gpu=nosuch", "unknown GPU 'nosuch'; A10-24GB is an example; `rayhelm catalog gpus` lists all"),
        ("source=nosuch", "is an example; `rayhelm catalog models` lists all"),
        ("gpu=L4-24GB/2", "a whole GPU is allowed"),
        ("chat.source=Qwen/Qwen3-33B", "near: Qwen/Qwen3-32B"),
        ("nodes=0", "a number of nodes, or a factor such as 2x"),
        ("price=-1", "USD per GPU and hour, a number above 0"),
        ("maxNumSeqs=0", "a number from 1 to 8192"),
    ],
)
def test_wrong_change_is_refused_with_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_changes(text, load(FLEET))
    assert message in str(error.value)


def test_hosts_of_a_pool_have_no_number_of_nodes() -> None:
    fleet = FLEET.replace("{gpu: L4-24GB, nodes: 8, price: 0.7 USD/h}", "{hosts: [{gpu: L4-24GB}]}")
    with pytest.raises(UsageError, match="only for pools with `nodes`"):
        parse_changes("nodes=2x", load(fleet))


def test_table_has_both_plans_and_the_difference(show_plan: Callable[..., str]) -> None:
    shown = show_plan("--what-if", "chat.traffic=8x")
    assert "now, and with chat.traffic=8x" in shown
    assert "then" in shown
    assert "+" in shown


def test_json_has_both_plans(show_plan: Callable[..., str]) -> None:
    found = json.loads(show_plan("--what-if", "chat.traffic=8x", "--format", "json"))
    assert found["usd_per_hour"]["after"] > found["usd_per_hour"]["before"]
    assert found["before"]["models"]["chat"]["replicas"] < found["after"]["models"]["chat"]["replicas"]


def test_quantized_checkpoint_of_the_same_model_is_offered_with_its_saving() -> None:
    loaded = load(FLEET)
    found = {each.what: each for each in alternatives()["chat"] if each.kind == "checkpoint"}
    assert set(found) <= {"source: Qwen/Qwen3-32B-FP8", "source: Qwen/Qwen3-32B-AWQ"}
    assert found
    now = plan_fleet(loaded).models["chat"].price_per_hour or 0.0
    for each in found.values():
        assert each.saving_per_hour == pytest.approx(now - each.price_per_hour)
        assert each.saving_per_hour > 0


def test_offered_checkpoint_costs_what_the_plan_with_it_costs() -> None:
    for each in alternatives()["chat"]:
        if each.kind == "checkpoint":
            planned = change(f"chat.source={each.what.removeprefix('source: ')}").models["chat"]
            assert planned.price_per_hour == pytest.approx(each.price_per_hour)


def test_models_of_equal_shape_with_other_weights_are_not_offered() -> None:
    fleet = FLEET.replace("Qwen/Qwen3-32B", "meta-llama/Llama-3.3-70B-Instruct")
    found = [each.what for each in alternatives(fleet)["chat"] if each.kind == "checkpoint"]
    assert found
    assert all("3.3" in what for what in found)


def test_spare_replica_costs_one_replica_more() -> None:
    planned = plan_fleet(load(FLEET)).models["chat"]
    (spare,) = [each for each in alternatives()["chat"] if each.kind == "spare replica"]
    assert spare.replicas == planned.replicas + 1
    assert spare.saving_per_hour == pytest.approx(-(planned.price_per_hour or 0.0) / planned.replicas)


def test_pinned_replicas_get_no_spare_one() -> None:
    fleet = FLEET.replace("context: 8192", "context: 8192\n    replicas: 4")
    assert not [each for each in alternatives(fleet).get("chat", []) if each.kind == "spare replica"]


def test_gpu_that_a_pool_has_is_not_offered_as_another_one() -> None:
    offered = {each.gpu for shapes in alternatives().values() for each in shapes if each.kind == "gpu"}
    assert not offered & {"H100-SXM-80GB", "L4-24GB"}


def test_alternatives_are_a_table_and_json(show_plan: Callable[..., str]) -> None:
    assert "replicas: 2" in show_plan("--alternatives")
    found = json.loads(show_plan("--alternatives", "--format", "json"))
    assert {each["kind"] for each in found["alternatives"]["chat"]} >= {"spare replica"}


@pytest.mark.parametrize(
    ("fleet", "options"),
    [
        ("three-tiers", ["--what-if", "traffic=2x"]),
        ("three-tiers", ["--alternatives", "--no-reasons"]),
        ("shared-gpus", ["--alternatives", "--no-reasons"]),
        ("prefill-decode", ["--what-if", "price=2"]),
    ],
)
def test_comparison_fits_80_columns(
    fleet: str, options: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = run(capsys, monkeypatch, "plan", str(VALUES / fleet), *options).out.partition("warning")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert "\N{HORIZONTAL ELLIPSIS}" not in table
    for model in plan_fleet(load_fleet(VALUES / fleet / "fleet.yaml")).models.values():
        shown = [model.model, model.pool, f"{model.price_per_hour:.2f}", str(model.replicas)]
        assert all(f"{text}" in table.split() or f"{text}," in table.split() for text in shown), shown
