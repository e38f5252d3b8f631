"""The change of the fleet file that each alternative states gives the price that it states."""

import pytest
import yaml

from rayhelm.fleet.merge_patch import apply_change
from rayhelm.planner.alternative import Alternative
from rayhelm.planner.alternatives import list_alternatives
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load, plan

_TRAFFIC = "traffic: {requestsPerSecond: %s, inputTokens: 1000, outputTokens: 200}"

DENSE = f"""
fleet: dense
pools:
  main: {{gpu: H100-SXM-80GB, nodes: 4, gpusPerNode: 8, network: ethernet-100g, price: 3 USD/h}}
  small: {{gpu: L4-24GB, nodes: 4, price: 0.2 USD/h}}
models:
  chat: {{source: Qwen/Qwen3-8B, context: 4096, {_TRAFFIC % 50}}}
  pinned: {{source: Qwen/Qwen3-32B, context: 8192, pool: main, parallelism: {{tensor: 4}}, {_TRAFFIC % 2}}}
  answers: {{source: Qwen/Qwen3-32B, context: 8192, {_TRAFFIC % 3}}}
"""
SHARED = """
fleet: shared
pools:
  gpu: {gpu: A100-SXM-80GB, nodes: 6, price: 2 USD/h, network: ethernet-100g}
models:
  one: {source: Qwen/Qwen3-0.6B, context: 4096}
  two: {source: Qwen/Qwen3-1.7B, context: 4096}
  three: {source: Qwen/Qwen3-4B, context: 4096}
  large: {source: Qwen/Qwen3-32B, context: 4096}
"""
MIXED = """
fleet: mixed
pools:
  gpu: {gpu: H100-SXM-80GB, nodes: 8, price: 3 USD/h}
models:
  a: {source: Qwen/Qwen3-0.6B, context: 2048}
  b: {source: Qwen/Qwen3-0.6B, context: 2048}
  c: {source: Qwen/Qwen3-14B, context: 2048}
"""
ROLES = """
fleet: roles
pools: {gpu: {gpu: H200-SXM-141GB, nodes: 3, gpusPerNode: 8, network: rdma-400g, rdmaResource: rdma/hca}}
models:
  chat:
    source: meta-llama/Llama-3.3-70B-Instruct
    context: 16384
    slo: {ttft: 2s, tpot: 40ms}
    traffic: {requestsPerSecond: 5, inputTokens: 3000, outputTokens: 300}
    parallelism: {tensor: 2}
"""
TAKEN = """
fleet: taken
pools:
  shared: {gpu: RTX-4090-24GB, nodes: 4, gpusPerNode: 2, nodeSelector: {pool: shared}, price: 0.6 USD/h}
  large: {gpu: A100-SXM-80GB, nodes: 4, nodeSelector: {pool: large}, price: 3.431 USD/h}
  other: {gpu: RTX-4090-24GB, nodes: 3, nodeSelector: {pool: other}, price: 0.6 USD/h}
models:
  first: {source: Qwen/Qwen2.5-0.5B-Instruct, context: 8192, pool: shared}
  wide:
    source: Qwen/Qwen3-30B-A3B
    traffic: {requestsPerSecond: 7.3, inputTokens: 1500, outputTokens: 300}
    engine: {max_num_seqs: 256}
  second: {source: Qwen/Qwen2.5-0.5B-Instruct, context: 8192, pool: shared, replicas: 1}
"""
COPIES = f"""
fleet: copies
pools:
  gpu: {{gpu: A100-SXM-80GB, nodes: 4, gpusPerNode: 2, price: 3.431 USD/h}}
models:
  chat: {{source: meta-llama/Llama-3.3-70B-Instruct, parallelism: {{tensor: 2}}}}
  copy:
    source: meta-llama/Llama-3.3-70B-Instruct
    context: 4096
    servedAs: {{model: chat}}
    {_TRAFFIC % 1}
"""
FLEETS = {"dense": DENSE, "shared": SHARED, "mixed": MIXED, "roles": ROLES}
KINDS = {
    "dense": {"checkpoint", "pool", "pools", "spot", "spare replica"},
    "shared": {"sharing", "gpu", "spare replica"},
    "mixed": {"sharing"},
    "roles": {"prefill/decode", "checkpoint"},
}


def list_all(fleet: str) -> list[tuple[str, Alternative]]:
    loaded = load(fleet)
    found = list_alternatives(plan_fleet(loaded))
    return [(name, each) for name, shapes in found.items() for each in shapes]


@pytest.mark.parametrize("name", FLEETS)
def test_fleet_file_with_the_change_of_a_shape_has_its_price(name: str) -> None:
    before = yaml.safe_load(FLEETS[name])
    found = list_all(FLEETS[name])
    assert {each.kind for _, each in found} >= KINDS[name]
    for model, each in found:
        if each.price_per_hour is None:
            assert not each.change
            continue
        after = plan(yaml.safe_dump(apply_change(before, each.change), sort_keys=False)).models
        added = [other for other in after if other not in before["models"]]
        total = sum(after[other].price_per_hour or 0.0 for other in (model, *added))
        assert total == pytest.approx(each.price_per_hour, abs=2e-3), (model, each.what)
        assert sum(after[other].replicas for other in (model, *added)) == each.replicas, (model, each.what)
        assert after[model].gpu in each.gpu.split("+")


def test_shape_is_left_out_when_it_makes_another_model_dearer() -> None:
    """Half GPUs of pool `shared` save 0.6 USD/h for two models. Model `wide` then needs the pool `large`."""
    before, found = plan(TAKEN), list_all(TAKEN)
    parts = {"pools": {"shared": {"sharing": {"shares": 2}}}}
    after = plan(yaml.safe_dump(apply_change(yaml.safe_load(TAKEN), parts)))
    assert (after.models["first"].price_per_hour or 0) < (before.models["first"].price_per_hour or 0)
    assert (after.price_per_hour or 0) > (before.price_per_hour or 0) + 2
    assert {each.what for _, each in found if each.kind == "sharing"} == {"service: first"}


@pytest.mark.parametrize("fleet", [DENSE, SHARED, MIXED, ROLES, TAKEN])
def test_fleet_with_a_shape_saves_at_least_what_the_shape_states(fleet: str) -> None:
    before = plan(fleet)
    for model, each in list_all(fleet):
        if each.saving_per_hour is None:
            continue
        after = plan(yaml.safe_dump(apply_change(yaml.safe_load(fleet), each.change), sort_keys=False))
        saved = (before.price_per_hour or 0.0) - (after.price_per_hour or 0.0)
        assert saved >= each.saving_per_hour - 5e-3, (model, each.what)


def test_models_that_need_whole_gpus_stay_on_their_pool_when_others_share() -> None:
    (shape,) = [
        each for name, each in list_all(SHARED) if name == "one" and "hardware" in each.what and each.kind == "sharing"
    ]
    assert set(shape.change["pools"]) == {"gpu", "gpu-shared"}
    assert "large" not in shape.change["models"]


def test_mig_instances_of_different_sizes_are_proposed_when_they_save_more() -> None:
    """Three equal instances have 20 GB each, too small for `c`; two have no room for all."""
    shapes = [each for name, each in list_all(MIXED) if name == "c" and "layout" in each.what]
    assert shapes
    assert "a, b, c: 1 GPU instead of 3" in shapes[0].note


def test_limit_of_a_tenant_is_part_of_the_change_when_it_is_too_low() -> None:
    owned = DENSE + "tenants: {team: {gpus: 4, models: [pinned, chat, answers]}}\nservices: {pinned: {tenant: team}}\n"
    (spare,) = [each for name, each in list_all(owned) if name == "pinned" and each.kind == "spare replica"]
    assert spare.change["tenants"] == {"team": {"gpus": 8}}
    assert spare.note.endswith("needs `tenants.team.gpus: 8`")
    changed = apply_change(yaml.safe_load(owned), spare.change)
    assert plan(yaml.safe_dump(changed)).models["pinned"].price_per_hour == spare.price_per_hour


def test_models_that_serve_one_name_change_their_checkpoint_together() -> None:
    copy = f"{{source: Qwen/Qwen3-32B, context: 8192, pool: main, servedAs: {{model: answers}}, {_TRAFFIC % 1}}}"
    found = list_all(DENSE.rstrip() + f"\n  copy: {copy}\n")
    shapes = [each for name, each in found if name == "answers" and each.kind == "checkpoint"]
    assert shapes
    for each in shapes:
        assert each.change["models"]["copy"] == each.change["models"]["answers"]
        assert "also of `copy`" in each.note


def test_checkpoint_of_models_with_one_name_states_the_saving_of_all() -> None:
    before = plan(COPIES)
    rows = {name: each for name, each in list_all(COPIES) if each.kind == "checkpoint"}
    assert set(rows) == {"chat", "copy"}
    assert len({str(sorted(each.change["models"].items())) for each in rows.values()}) == 1
    after = plan(yaml.safe_dump(apply_change(yaml.safe_load(COPIES), rows["chat"].change)))
    saved = (before.price_per_hour or 0.0) - (after.price_per_hour or 0.0)
    assert sum(each.saving_per_hour or 0.0 for each in rows.values()) == pytest.approx(saved, abs=1e-3)
    for each in rows.values():
        assert saved > (each.saving_per_hour or 0.0) + 1
        assert each.note.endswith(f"; the models together cost {saved:.2f} USD/h less")
