"""The examples of docs/tasks/collect-logs: they parse, and a real collector makes of a log line what they promise."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.kit import rendered
from rayhelm.runtime.log_relay import format_line
from shared.built import built_program
from testbed.log_pipeline import EXAMPLES, LogPipeline, merge_examples, run_pipeline

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/tasks/collect-logs.md"
SINKS = ("loki", "elasticsearch", "opensearch")
FILES = sorted(path.name for path in EXAMPLES.glob("*.yaml"))
GATEWAY_LINE = {"time": "2026-11-23T02:00:40Z", "request_id": "r-1", "tenant": "apps", "model": "chat", "status": 200}
SERVE_LINE = {
    **{"levelname": "ERROR", "timestamp_ns": 1795398117580959929, "message": "POST /chat 500 9.0ms"},
    **{"request_id": "r-1", "tenant": "apps"},
}


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


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogPipeline]:
    built_program("otelcol")
    with run_pipeline(tmp_path_factory.mktemp("logs")) as started:
        yield started


def find(pipeline: LogPipeline, body: str) -> dict[str, Any]:
    records = pipeline.wait_for(lambda found: any(record["body"] == body for record in found))
    (found,) = [record for record in records if record["body"] == body]
    return found


def test_collector_finds_tenant_and_request_id_of_the_gateway(pipeline: LogPipeline) -> None:
    line = json.dumps(GATEWAY_LINE)
    pipeline.add_container("gateway", "gateway-1", "haproxy").write([line])
    found = find(pipeline, line)
    assert found["path"] == "/otlp/v1/logs"
    assert found["resource"].items() >= {
        "tenant": "apps",
        "k8s.namespace.name": "gateway",
        "k8s.pod.name": "gateway-1",
        "k8s.container.name": "haproxy",
    }.items()  # fmt: skip
    assert found["attributes"].items() >= {"request_id": "r-1", "model": "chat"}.items()
    assert found["time"] == 1795399240 * 10**9


def test_collector_finds_tenant_and_request_id_of_serve(pipeline: LogPipeline) -> None:
    line = format_line(json.dumps(SERVE_LINE).encode(), file="serve/proxy.log")
    pipeline.add_container("apps", "chat-head-1", "logs").write([line])
    found = find(pipeline, line)
    assert found["resource"]["tenant"] == "apps"
    assert found["attributes"]["request_id"] == "r-1"
    assert found["severity"] == "error"
    assert found["time"] == 1795398117580960 * 1000


@pytest.mark.parametrize(
    "line",
    [
        json.dumps({**GATEWAY_LINE, "tenant": "-", "model": "-", "request_id": "refused"}),
        json.dumps({"time": "2026-11-23T02:00:40Z", "level": "info", "message": "no request"}),
        "[notice] keys of apps: 1 valid",
        '{"time": "2026',
    ],
)
def test_collector_keeps_lines_without_a_tenant(pipeline: LogPipeline, line: str) -> None:
    pipeline.add_container("gateway", "gateway-2", "haproxy").write([line])
    found = find(pipeline, line)
    assert "tenant" not in found["resource"]
    assert "model" not in found["attributes"]


def test_collector_ignores_other_containers(pipeline: LogPipeline) -> None:
    pipeline.add_container("apps", "chat-head-1", "ray-head").write(["not read"])
    marker = json.dumps({"message": "written after it"})
    pipeline.add_container("apps", "chat-head-1", "logs").write([marker])
    find(pipeline, marker)
    assert "not read" not in [record["body"] for record in pipeline.records]
