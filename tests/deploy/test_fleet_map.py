"""The drawing of a fleet's nodes in plan.md."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.render.files import build_files, render_plan
from rayhelm.deploy.render.fleet_map import draw_fleet_map
from rayhelm.fleet.load import load_fleet
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load, plan

SVG = "{http://www.w3.org/2000/svg}"
FLEETS = sorted((charts_dir().parent / "values").glob("*/fleet.yaml"))
CLUSTER = "clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, gateway: {allowedClients: [apps]}}}\n"
THOUSAND = """
fleet: large
pools: {gpu: {gpu: H100-SXM-80GB, nodes: 125, gpusPerNode: 8, network: rdma-400g}}
models: {chat: {source: Qwen/Qwen3-32B, context: 8192, replicas: 900}}
"""


def draw(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(draw_fleet_map(plan(text)))


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("fleet", FLEETS, ids=lambda path: path.parent.name)
def test_map_names_all_pools_and_models_and_stays_inside_its_frame(fleet: Path) -> None:
    planned = plan_fleet(load_fleet(fleet))
    root = ElementTree.fromstring(draw_fleet_map(planned))
    for name in (*planned.pools, *planned.models):
        assert any(text.startswith(name) for text in texts(root)), name
    for each in root.iter(f"{SVG}rect"):
        x, y, width, height = (float(each.get(key, 0)) for key in ("x", "y", "width", "height"))
        assert x + width <= 960.5
        assert y + height <= float(root.get("height", 0))


def test_bar_has_weights_and_kv_cache_in_proportion_to_the_memory() -> None:
    planned = plan_fleet(load_fleet(charts_dir().parent / "values/single-gpu/fleet.yaml"))
    ((pool, use),) = planned.pools.items()
    ((model,), memory) = planned.models.values(), use.nodes[0].memory_gib
    assert pool, memory
    gpu = next(iter(ElementTree.fromstring(draw_fleet_map(planned)).iter(f"{SVG}g")))
    frame, weights, cache = (float(each.get("width", 0)) for each in gpu.iter(f"{SVG}rect"))
    assert memory
    assert weights / frame == pytest.approx(model.stages[0].weights_gib / memory, abs=0.01)
    assert cache / frame == pytest.approx(model.stages[0].kv_gib / memory, abs=0.01)


def test_nodes_with_the_same_content_are_drawn_once() -> None:
    root = draw(THOUSAND)
    assert {"112 nodes", "12 nodes", "1 node"} <= set(texts(root))
    assert float(root.get("height", 0)) < 400


def test_map_needs_no_script_and_nothing_from_elsewhere_and_is_drawn_again_the_same() -> None:
    text = draw_fleet_map(plan(THOUSAND))
    assert text == draw_fleet_map(plan(THOUSAND))
    assert "script" not in text
    assert text.count("http") == 1  # the namespace
    assert "prefers-color-scheme:dark" in text


def test_map_escapes_names() -> None:
    planned = plan(THOUSAND)
    wild = planned.model_copy(update={"fleet": "<b>&"})
    assert any("<b>&" in text for text in texts(ElementTree.fromstring(draw_fleet_map(wild))))


def test_plan_page_shows_the_map() -> None:
    files = build_files(render_plan(plan_fleet(load(THOUSAND + "tenants: {a: {models: [chat]}}\n" + CLUSTER))))
    assert "(map.svg)" in files["plan.md"]
    assert "map.svg" in files
