"""The examples of chart quickstart: the policies of both charts in one namespace, and the size of the README's."""

import json
import shutil
import subprocess
from math import ceil
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from charts.kit import HELMS, only, parsed
from rayhelm.deploy.charts.helm import charts_dir, render
from rayhelm.facts.quantities import parse_quantity

CHART = charts_dir() / "quickstart"
README = Path(__file__).parents[2] / "README.md"
EXAMPLE = CHART / "examples/llama-8b.yaml"


@pytest.fixture(scope="module")
def objects() -> dict[str, list[dict[str, Any]]]:
    """What each chart renders, by chart."""
    values = yaml.safe_load(EXAMPLE.read_text())
    return {chart: parsed(render(chart, "llm", "llm", part)) for chart, part in values.items()}


def test_service_admits_the_gateway_of_the_release(objects: dict[str, list[dict[str, Any]]]) -> None:
    labels = only(objects["gateway"], "Deployment")["spec"]["template"]["metadata"]["labels"]
    worker = only(objects["ray-service"], "NetworkPolicy", "llama-8b-worker")["spec"]
    peers = [peer for rule in worker["ingress"] for peer in rule["from"] if "namespaceSelector" not in peer]
    assert any(peer["podSelector"].get("matchLabels", {"": ""}).items() <= labels.items() for peer in peers)


def test_gateway_may_connect_to_the_workers_of_the_release(objects: dict[str, list[dict[str, Any]]]) -> None:
    worker = only(objects["ray-service"], "NetworkPolicy", "llama-8b-worker")["spec"]["podSelector"]
    egress = only(objects["gateway"], "NetworkPolicy")["spec"]["egress"]
    selected = [peer["podSelector"]["matchLabels"] for rule in egress for peer in rule["to"]]
    assert {**worker["matchLabels"], "rayhelm.dev/role": "worker"} in selected


def count_requests(pods: list[dict[str, Any]]) -> tuple[float, float, float]:
    """CPUs, GiB and GPUs, rounded up."""
    requests = [container["resources"]["requests"] for pod in pods for container in pod["spec"]["containers"]]
    cpus, memory, gpus = (
        sum(parse_quantity(each.get(name, 0)) for each in requests) for name in ("cpu", "memory", "nvidia.com/gpu")
    )
    return ceil(cpus), ceil(memory / 2**30), gpus


def test_pods_of_the_readme_example_fit_what_the_readme_asks_for() -> None:
    values = yaml.safe_load((CHART / "examples/qwen3-4b.yaml").read_text())
    found = {chart: parsed(render(chart, "llm", "llm", part)) for chart, part in values.items()}
    cluster = only(found["ray-service"], "RayService")["spec"]["rayClusterConfig"]
    pods = [
        cluster["headGroupSpec"]["template"],
        *(group["template"] for group in cluster["workerGroupSpecs"] for _ in range(group["replicas"])),
        only(found["gateway"], "Deployment")["spec"]["template"],
        only(found["ray-service"], "Job")["spec"]["template"],
    ]
    assert "9 free CPUs and 33 GiB of memory, of which 3 CPUs and 15 GiB are on" in README.read_text()
    assert count_requests(pods) == (9, 33, 1)
    assert count_requests(pods[1:2]) == (3, 15, 1)
    assert "nodeSelector" not in cluster["workerGroupSpecs"][0]["template"]["spec"], "any GPU will do"


@pytest.mark.parametrize("given", ["sk-plain", "E" * 64, ""])
def test_key_that_is_not_a_hash_is_refused(given: str) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = {"ray-service": {}, "gateway": {}, "keys": {"gateway-keys-apps": given}}
    (problem,) = Draft202012Validator(schema).iter_errors(values)
    assert "does not match" in problem.message


def test_key_of_no_tenant_is_refused(tmp_path: Path) -> None:
    """The gateway would wait for the Secret that its tenant names."""
    chart = tmp_path / "quickstart"
    shutil.copytree(CHART, chart, ignore=shutil.ignore_patterns("charts", "Chart.lock"))
    for dependency in ("gateway", "ray-service"):
        shutil.copytree(charts_dir() / dependency, chart / "charts" / dependency)
    hashed = "0" * 64

    def install(name: str) -> subprocess.CompletedProcess[str]:
        options = ["--values", CHART / "examples/qwen3-4b.yaml", "--set", f"keys.{name}={hashed}"]
        options += ["--set", "ray-service.networkPolicy.apiServer.cidrs={10.0.0.1/32}"]
        command = [HELMS["4"], "template", "llm", chart, "--namespace", "llm", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    (secret,) = [each for each in yaml.safe_load_all(install("gateway-keys-apps").stdout) if each["kind"] == "Secret"]
    assert secret["stringData"] == {"keys": f"{hashed} first"}
    refused = install("gateway-keys-app")
    assert refused.returncode
    assert "keys.gateway-keys-app: no tenant of the gateway has a Secret of this name" in refused.stderr
    assert f"keys: {{gateway-keys-apps: {hashed}}}" in refused.stderr
