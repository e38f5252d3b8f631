"""The examples of docs/tasks/collect-logs: they parse, and agree with each other and with the charts."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.kit import over, rendered

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/tasks/collect-logs.md"
EXAMPLES = ROOT / "docs/tasks/collect-logs"
SINKS = ("loki", "elasticsearch", "opensearch")
FILES = sorted(path.name for path in EXAMPLES.glob("*.yaml"))


def merge_examples(*names: str) -> dict[str, Any]:
    """Return the values of several files, as Helm merges them."""
    merged: dict[str, Any] = {}
    for name in names:
        merged = over(merged, yaml.safe_load((EXAMPLES / name).read_text()))
    return merged


@pytest.mark.parametrize("name", FILES)
def test_example_is_named_in_the_page(name: str) -> None:
    assert isinstance(yaml.safe_load((EXAMPLES / name).read_text()), dict)
    assert f"collect-logs/{name}" in PAGE.read_text()


@pytest.mark.parametrize("sink", SINKS)
def test_collector_example_defines_what_its_pipeline_uses(sink: str) -> None:
    config = merge_examples("otel.yaml", f"otel-{sink}.yaml")["config"]
    pipeline = config["service"]["pipelines"]["logs"]
    assert set(pipeline["exporters"]) == config["exporters"].keys()
    # The chart defines `health_check` itself.
    assert set(config["service"].get("extensions", ["health_check"])) == {"health_check", *config.get("extensions", {})}


@pytest.mark.parametrize("sink", SINKS)
def test_fluent_bit_example_has_inputs_filters_and_one_output(sink: str) -> None:
    config = merge_examples("fluent-bit.yaml", f"fluent-bit-{sink}.yaml")["config"]
    assert config["inputs"].count("[INPUT]") == 1
    assert config["outputs"].count("[OUTPUT]") == 1
    for text in config.values():
        for line in filter(None, map(str.strip, text.splitlines())):
            assert re.fullmatch(r"\[[A-Z]+\]|#.*|[\w.-]+ +\S.*", line), line


@pytest.mark.parametrize("name", ["elasticsearch", "opensearch"])
@pytest.mark.parametrize(("agent", "key"), [("otel", "extraEnvs"), ("fluent-bit", "env")])
def test_credentials_of_an_example_are_in_a_secret(agent: str, key: str, name: str) -> None:
    values = merge_examples(f"{agent}-{name}.yaml")
    variables = [variable["name"] for variable in values[key] if variable["valueFrom"]["secretKeyRef"]]
    written = re.findall(r"\$\{(?:env:)?(\w+)\}", yaml.safe_dump(values["config"]))
    assert sorted(set(written)) == sorted(variables)


def test_request_id_is_no_label_of_loki() -> None:
    labels = re.search(r"Labels +(.*)", merge_examples("fluent-bit-loki.yaml")["config"]["outputs"])
    (rule,) = merge_examples("loki.yaml")["loki"]["limits_config"]["otlp_config"]["resource_attributes"][
        "attributes_config"
    ]
    assert labels
    for found in (labels[1], str(rule["attributes"])):
        assert "tenant" in found
        assert "request_id" not in found
        assert "pod_name" not in found


def test_examples_read_the_containers_that_the_charts_make() -> None:
    on = {"logs": {"stdout": {"enabled": True}}}
    (service,) = [item for item in rendered(on) if item["kind"] == "RayService"]
    head = service["spec"]["rayClusterConfig"]["headGroupSpec"]["template"]["spec"]
    (gateway,) = [item for item in rendered(chart="gateway", base="gateway/minimal") if item["kind"] == "Deployment"]
    names = {
        *(container["name"] for container in head["initContainers"]),
        *(container["name"] for container in gateway["spec"]["template"]["spec"]["containers"]),
    }
    read = merge_examples("otel.yaml")["config"]["receivers"]["filelog"]["include"]
    assert {path.split("/")[-2] for path in read} == names & {"haproxy", "logs"} == {"haproxy", "logs"}
    inputs = merge_examples("fluent-bit.yaml")["config"]["inputs"]
    assert set(re.findall(r"\*_([a-z]+)-\*\.log", inputs)) == {"haproxy", "logs"}
