"""Shapes that share a GPU or use two pools, and the chart of all shapes."""

import xml.etree.ElementTree as ElementTree
from math import ceil

import pytest

from rayhelm.deploy.render.files import build_files, render_plan
from rayhelm.deploy.render.shapes_chart import draw_shapes
from rayhelm.planner.alternative import Alternative
from rayhelm.planner.alternatives import list_alternatives
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load, plan

SMALL = """
fleet: compared
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, gateway: {allowedClients: [apps]}}}
pools:
  gpu: {gpu: A100-SXM-80GB, nodes: 4, price: 2 USD/h, network: ethernet-100g}
models:
  one: {source: Qwen/Qwen3-0.6B, context: 4096}
  two: {source: Qwen/Qwen3-1.7B, context: 4096, pool: gpu}
"""
UNEQUAL = """
fleet: compared
pools:
  l4: {gpu: L4-24GB, nodes: 6, price: 0.8048 USD/h}
models:
  chat:
    source: Qwen/Qwen2.5-7B-Instruct
    context: 4096
    traffic: {requestsPerSecond: 6, inputTokens: 500, outputTokens: 300, burst: {dispersion: 4}}
    engine: {max_num_seqs: 256}
  small: {source: Qwen/Qwen2.5-0.5B-Instruct, context: 4096}
  tiny: {source: Qwen/Qwen2.5-0.5B-Instruct, context: 4096}
"""
LARGE = """
fleet: compared
pools:
  main: {gpu: H100-SXM-80GB, nodes: 4, gpusPerNode: 8, network: ethernet-100g, price: 3 USD/h}
  small: {gpu: L4-24GB, nodes: 4, price: 0.2 USD/h}
models:
  chat: {source: Qwen/Qwen3-8B, context: 4096, traffic: {requestsPerSecond: 50, inputTokens: 1000, outputTokens: 200}}
"""
OVER_HOSTS = """
fleet: compared
pools:
  gpu: {gpu: L40S-48GB, nodes: 4, gpusPerNode: 4, network: ethernet-100g, price: 1 USD/h}
models:
  chat:
    source: meta-llama/Llama-3.3-70B-Instruct
    context: 8192
    traffic: {requestsPerSecond: 1, inputTokens: 1024, outputTokens: 500}
"""


def find(fleet: str, model: str, kind: str) -> list[Alternative]:
    loaded = load(fleet)
    return [each for each in list_alternatives(plan_fleet(loaded)).get(model, []) if each.kind == kind]


def test_models_of_one_service_share_as_many_gpus_as_the_plan_with_that_service() -> None:
    (one,) = [each for each in find(SMALL, "one", "sharing") if each.what == "service: one"]
    (two,) = [each for each in find(SMALL, "two", "sharing") if each.what == "service: one"]
    assert "one, two: 1 GPU instead of 2" in one.note
    assert (one.saving_per_hour or 0) + (two.saving_per_hour or 0) == pytest.approx(2)
    planned = plan(SMALL.replace("context: 4096", "context: 4096, service: one"))
    assert ceil(planned.pools["gpu"].used) == 1
    assert planned.models["two"].gpu_fraction < 1


def test_saving_of_shared_gpus_is_divided_by_what_each_model_gives_up() -> None:
    """Model `chat` gives up a small part of its four GPUs."""
    loaded = load(UNEQUAL)
    now = plan_fleet(loaded).models
    shapes = {
        name: (now[name].price_per_hour or 0.0, each)
        for name, shapes in list_alternatives(plan_fleet(loaded)).items()
        for each in shapes
        if each.what == "service: chat"
    }
    assert set(shapes) == {"chat", "small", "tiny"}
    assert sum(each.saving_per_hour or 0.0 for _, each in shapes.values()) == pytest.approx(0.8048, abs=1e-3)
    saved = sum(price - (each.price_per_hour or 0.0) for price, each in shapes.values())
    assert saved == pytest.approx(0.8048, abs=1e-3)
    assert all((each.saving_per_hour or 0.0) > 0 for _, each in shapes.values())


@pytest.mark.parametrize("isolation", ["", ", isolation: hardware"])
def test_models_on_parts_of_a_gpu_use_as_many_as_the_plan_with_them(isolation: str) -> None:
    found = [each for each in find(SMALL, "two", "sharing") if each.what.startswith("pools.gpu.sharing")]
    (shape,) = [each for each in found if ("hardware" in each.what) == bool(isolation)]
    sharing = shape.what.partition(": ")[2]
    assert shape.saving_per_hour == pytest.approx(1)
    planned = plan(SMALL.replace("gpu: A100-SXM-80GB,", f"gpu: A100-SXM-80GB, sharing: {sharing},"))
    assert ceil(planned.pools["gpu"].used) == 1
    assert planned.models["two"].gpu == shape.gpu


def test_model_that_would_leave_the_rest_of_its_gpu_unused_is_not_shared() -> None:
    assert not find(SMALL.replace("  one: {source: Qwen/Qwen3-0.6B, context: 4096}\n", ""), "two", "sharing")


def test_models_of_different_owners_share_no_service() -> None:
    owned = SMALL + "services: {two: {tenant: b}}\ntenants: {b: {models: [one, two]}}\n"
    assert not [each for each in find(owned, "one", "sharing") if each.what.startswith("service")]


def test_models_with_pinned_fractions_get_no_other_part() -> None:
    assert not find(SMALL.replace("context: 4096", "context: 4096, gpuFraction: 1"), "one", "sharing")


def test_spot_keeps_half_of_the_replicas_on_demand() -> None:
    (spot,) = find(LARGE, "chat", "spot")
    planned = plan(LARGE).models["chat"]
    assert planned.replicas == 2
    assert spot.what == "replicas: 1, and replicas: 1 on a spot pool"
    assert spot.price_per_hour == pytest.approx(6 + 2 * 1.455)


def test_spot_takes_the_price_of_a_spot_pool_of_the_fleet() -> None:
    size = "gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8"
    pool = f"  spare: {{{size}, spot: karpenter, price: 1 USD/h, nodeSelector: {{a: b}}}}\n"
    fleet = LARGE.replace("nodes: 4, gpus", "nodes: 4, nodeSelector: {a: c}, gpus").replace("models:", pool + "models:")
    (spot,) = find(fleet.replace("context: 4096", "context: 4096, pool: main"), "chat", "spot")
    assert spot.price_per_hour == pytest.approx(6 + 2)
    assert "`price` of the spot pool" in spot.note


def test_spot_of_unknown_price_names_what_is_missing() -> None:
    fleet = LARGE.replace("nodes: 4, price", "nodes: 400, price").replace("context: 4096", "context: 4096, pool: small")
    (spot,) = find(fleet, "chat", "spot")
    assert (spot.price_per_hour, spot.saving_per_hour) == (None, None)
    assert "the spot price of L4-24GB is unknown: set `price`" in spot.note


def test_replicas_on_two_pools_cost_what_two_models_cost() -> None:
    (pair,) = find(LARGE, "chat", "pools")
    now = plan(LARGE).models["chat"].price_per_hour or 0.0
    assert pair.pool == "small+main"
    assert pair.saving_per_hour == pytest.approx(now - (pair.price_per_hour or 0))
    first, second = (int(part.split(" ")[0]) for part in pair.what.split("replicas: ")[1:])
    split = f"parallelism: {{tensor: {pair.tensor_parallel_size}, pipeline: {pair.pipeline_parallel_size}}}"
    two = LARGE.replace("  chat: {", f"  chat: {{pool: small, replicas: {first}, {split}, ")
    served = f"pool: main, replicas: {second}, servedAs: {{model: chat}}"
    more = f"  more: {{source: Qwen/Qwen3-8B, context: 4096, {served}}}\n"
    planned = plan(two + more)
    assert planned.price_per_hour == pytest.approx(pair.price_per_hour)


def test_pinned_replicas_are_not_spread_over_pools() -> None:
    fleet = LARGE.replace("context: 4096", "context: 4096, replicas: 9")
    assert not find(fleet, "chat", "pools") + find(fleet, "chat", "spot")


def test_pool_that_a_pin_excludes_is_offered_with_its_key() -> None:
    fleet = LARGE.replace("context: 4096", "context: 4096, pool: main").replace(
        "requestsPerSecond: 50", "requestsPerSecond: 1"
    )
    (shape,) = find(fleet, "chat", "pool")
    assert shape.what == "pool: small"
    assert plan(fleet.replace("pool: main", "pool: small")).models["chat"].price_per_hour == shape.price_per_hour


def test_pipeline_over_more_hosts_than_needed_is_offered_and_not_planned() -> None:
    now = plan(OVER_HOSTS).models["chat"]
    (shape,) = find(OVER_HOSTS, "chat", "hosts")
    assert (now.nodes_per_replica, now.replicas, now.price_per_hour) == (1, 3, 12)
    assert (shape.what, shape.replicas, shape.price_per_hour) == (
        "pool: gpu, parallelism: {tensor: 2, pipeline: 4}",
        1,
        8,
    )
    assert "2 hosts for each replica: the loss of one stops all of it" in shape.note
    planned = plan(OVER_HOSTS.replace("context: 8192", "context: 8192\n    parallelism: {tensor: 2, pipeline: 4}"))
    assert (planned.models["chat"].nodes_per_replica, planned.models["chat"].price_per_hour) == (2, 8)


def test_plan_over_hosts_does_not_call_a_model_too_large_that_fits_one() -> None:
    found = plan(OVER_HOSTS.replace("nodes: 4", "nodes: 2"))
    assert found.models["chat"].nodes_per_replica == 2
    (reason,) = [each for each in found.models["chat"].reasons if each.decision == "pipeline_parallel_size"]
    assert "one host holds the weights, and several have more memory for the KV cache" in reason.because


@pytest.mark.parametrize("target", ["", "    slo: {capacityAvailability: 0.999}\n"])
def test_pipeline_over_more_hosts_saves_nothing_if_a_lost_host_must_not_matter(target: str) -> None:
    found = find(OVER_HOSTS.replace("nodes: 4", "nodes: 8") + target, "chat", "hosts")
    assert bool(found) != bool(target)


def test_chart_has_each_shape_with_its_axes_and_needs_nothing_from_elsewhere() -> None:
    loaded = load(SMALL)
    planned = plan_fleet(loaded)
    found = list_alternatives(planned)
    text = draw_shapes(planned, found)
    assert text == draw_shapes(planned, found)
    texts = [each.text for each in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("price, USD/h") == texts.count("TPOT, ms") == len(planned.models)
    for shapes in found.values():
        for number, each in enumerate(shapes, start=1):
            assert f"{number}  {each.what}" in texts
    assert "prefers-color-scheme:dark" in text
    assert text.count("http") == 1  # the namespace


def test_chart_escapes_names_of_models() -> None:
    planned = plan(SMALL)
    wild = planned.model_copy(update={"models": {"a": planned.models["one"].model_copy(update={"model": "<b>&"})}})
    shape = find(SMALL, "one", "sharing")[0].model_copy(update={"what": "<script>" + "x" * 200})
    root = ElementTree.fromstring(draw_shapes(wild, {"a": [shape]}))
    assert any(each.text == "<b>&" for each in root.iter())
    assert not list(root.iter("script"))


def test_chart_of_models_without_another_shape_says_so() -> None:
    assert "No model has another shape" in draw_shapes(plan(SMALL), {})


def test_plan_page_has_the_shapes_only_if_the_fleet_asks_for_them() -> None:
    fleet = SMALL + "tenants: {a: {models: [one, two]}}\n"
    plain = build_files(render_plan(plan_fleet(load(fleet))))
    files = build_files(render_plan(plan_fleet(load(fleet + "review: {alternatives: true}\n"))))
    assert "shapes.svg" not in plain
    assert "Other shapes" not in plain["plan.md"]
    assert "![Price against latency of other shapes of each model](shapes.svg)" in files["plan.md"]
    assert "| | `service: one` |" in files["plan.md"]
    assert {name for name in files if plain.get(name) != files[name]} == {"plan.md", "shapes.svg"}
