"""The YAML of docs/tasks/collect-traces.md."""

import re
from pathlib import Path
from typing import Any

import yaml

from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet

PAGE = (Path(__file__).parents[2] / "docs/tasks/collect-traces.md").read_text()
BLOCKS: list[Any] = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)]
FLEET, COLLECTOR, POLICY = BLOCKS


def test_fleet_of_the_page_is_accepted() -> None:
    rest = {"fleet": "traced", "pools": {"gpu": {"gpu": "L4-24GB", "nodes": 1}}}
    models = {"chat": {"source": "Qwen/Qwen3-8B", "context": 4096}}
    text = yaml.safe_dump({**rest, "models": models, **FLEET})
    tracing = parse_fleet(parse_document(text, "fleet.yaml")).fleet.clusters["main"].tracing
    assert tracing
    assert tracing.port == 4317


def test_pipeline_of_the_collector_names_defined_components() -> None:
    (pipeline,) = COLLECTOR["service"]["pipelines"].values()
    for kind in ("receivers", "processors", "exporters"):
        assert set(pipeline[kind]) == set(COLLECTOR[kind])


def test_policy_of_the_collector_admits_pods_of_services() -> None:
    (rule,) = POLICY["spec"]["ingress"]
    ((expression,),) = [peer["podSelector"]["matchExpressions"] for peer in rule["from"]]
    labels = (charts_dir() / "ray-service/templates/_labels.tpl").read_text()
    assert f"{expression['key']}:" in labels
    assert rule["ports"] == [{"port": 4317, "protocol": "TCP"}]
    assert POLICY["spec"]["podSelector"]["matchLabels"] == FLEET["clusters"]["main"]["tracing"]["podLabels"]
