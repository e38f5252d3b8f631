"""`rayhelm rehearse` as a person calls it, on a node with real pods: the smallest fleet, and edits of it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from pods.kit.cluster import Cluster
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.run.rehearsal.load import NAMESPACE
from testbed.images.__main__ import build
from testbed.node.images import give, wait_until_reported
from testbed.tools import program

VALUES = charts_dir().parent / "values"
FLEET = (VALUES / "single-gpu" / "fleet.yaml").read_text()
ROOMY = FLEET.replace("nodes: 1", "nodes: 2")
"""With a second GPU, so that a second cluster has room."""
SEARCH = """
  finds:
    source: BAAI/bge-large-en-v1.5
    unpinnedReason: an example of a test
    task: embed
    traffic: {requestsPerSecond: 1, inputTokens: 200}
"""
TWO = ROOMY.replace("models: [llama-8b]", "models: [llama-8b, finds]").replace("\ntenants:", f"{SEARCH}tenants:")
"""With a model for the second GPU: a service of its own."""
OF_IT = {"models", "gateway", "rayhelm-system", NAMESPACE}
Rehearse = Callable[..., tuple[int, str]]

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
def rehearse(cluster: Cluster, tmp_path: Path) -> Rehearse:
    """Exit code and answer of the command, given texts of fleet files."""
    for tag in ("cpu", "haproxy"):
        reference = give(cluster.node.home, cluster.pid, build(tag), tag)
        wait_until_reported(cluster.kubectl, reference)
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.node.home.kubeconfig),
        "KUBECTL": str(program("kubectl")),
        "HELM": str(program("helm")),
    }

    def call(*words: str, fleet: str = "", change: str = "") -> tuple[int, str]:
        files = []
        for option, text in (("", fleet), ("--change", change)):
            if text:
                file = tmp_path / f"fleet{option}.yaml"
                file.write_text(text)
                files += [*([option] if option else []), str(file)]
        command = [sys.executable, "-c", "from rayhelm.cli import main; main()", "rehearse", *files, *words]
        answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert "Traceback" not in answer.stderr
        return answer.returncode, answer.stdout or answer.stderr

    return call


def report(rehearse: Rehearse, **texts: str) -> dict[str, Any]:
    code, said = rehearse("--seconds=10", "--format=json", **texts)
    reported: dict[str, Any] = json.loads(said)
    assert "services" in reported, said
    assert code == (0 if reported["ok"] else 1)
    return reported


def namespaces(cluster: Cluster) -> set[str]:
    names = cluster.kubectl("get", "namespaces", "--output=name")
    return {name.removeprefix("namespace/") for name in names.split()}


def test_edit_of_pods_builds_another_cluster_and_loses_nothing(rehearse: Rehearse, cluster: Cluster) -> None:
    reported = report(
        rehearse, fleet=ROOMY, change=ROOMY.replace("gpusPerNode: 1", "gpusPerNode: 1, nodeSelector: {a: b}")
    )
    (change,) = reported["changes"]
    assert (change["effect"], change["name"]) == ("new cluster", "llama-8b")
    assert 0 < change["switched_seconds"] < change["seconds"]
    (gpus,) = reported["gpus"]
    assert [gpus[when] for when in ("before", "peak", "after", "capacity")] == [1, 2, 1, 2]
    assert (reported["failures"], reported["error"]) == ([], "")
    assert reported["during"]["answered"] > 50
    assert reported["peak_clusters"] == 2
    assert not OF_IT & namespaces(cluster)


def test_edit_of_the_context_is_made_in_place(rehearse: Rehearse, cluster: Cluster) -> None:
    """One replica, which Serve restarts: requests wait for it or are reported as failed."""
    reported = report(rehearse, fleet=FLEET, change=FLEET.replace("context: 8192", "context: 4096"))
    (change,) = reported["changes"]
    assert (change["effect"], change["switched_seconds"]) == ("serve config", None)
    assert reported["peak_clusters"] == 1
    assert [reported["gpus"][0][when] for when in ("before", "peak", "after")] == [1, 1, 1]
    assert reported["error"] == ""
    assert len(reported["failures"]) == min(10, reported["during"]["failed"])
    assert reported["during"]["failed"] < reported["during"]["answered"] / 50
    assert any("restarts its only replica in place" in warning for warning in reported["warnings"])
    assert not OF_IT & namespaces(cluster)


def test_edit_of_one_of_five_tasks_in_one_cluster_loses_no_request(rehearse: Rehearse) -> None:
    fleet = (VALUES / "homelab" / "fleet.yaml").read_text()
    change = fleet.replace("    task: rerank\n", "    task: rerank\n    engine: {max_num_seqs: 4}\n")
    reported = report(rehearse, fleet=fleet, change=change)
    (service,), (change_of_serve,) = reported["services"], reported["changes"]
    assert set(service["models"]) == {"llm", "whisper", "tts", "embeddings", "reranker"}
    assert change_of_serve["effect"] == "serve config"
    assert change_of_serve["details"] == ["Ray Serve receives another configuration of reranker"]
    assert reported["peak_clusters"] == 1
    assert (reported["failures"], reported["error"]) == ([], "")
    assert reported["during"]["answered"] > 50


def test_edit_under_strategy_none_is_forecast_without_effect(rehearse: Rehearse) -> None:
    """The smallest fleet has one GPU: its upgrades are None."""
    reported = report(
        rehearse, fleet=FLEET, change=FLEET.replace("gpusPerNode: 1", "gpusPerNode: 1, nodeSelector: {a: b}")
    )
    assert reported["changes"][0]["effect"] == "held back"
    assert reported["peak_clusters"] == 1
    assert any("`upgrade.strategy: None` prevents a new cluster" in warning for warning in reported["warnings"])
    assert reported["ok"]


def test_kept_rehearsal_answers_until_it_is_cleaned(rehearse: Rehearse, cluster: Cluster) -> None:
    code, said = rehearse("--seconds=1", "--keep", fleet=FLEET)
    assert code == 0, said
    key = said.partition("Bearer ")[2].partition("'")[0]
    pods = cluster.get("gateway", "pods")["items"]
    policy = {"podSelector": {}, "ingress": [{}], "policyTypes": ["Ingress"]}
    meta = {"name": "this-computer", "namespace": "gateway"}
    cluster.apply({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": policy})
    body = {"model": "llama-8b", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 8}
    retries = httpx.HTTPTransport(retries=5)  # the policy takes a moment
    gateway = f"http://{pods[0]['status']['podIP']}:8080"
    with httpx.Client(base_url=gateway, timeout=120, trust_env=False, transport=retries) as client:
        answer = client.post("/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200, answer.text
    code, said = rehearse(fleet=FLEET)
    assert (code, "was kept on this cluster" in said) == (1, True)
    code, said = rehearse("--clean")
    assert code == 0, said
    assert not OF_IT & namespaces(cluster)


def test_two_services_answer_the_same_key_behind_one_gateway(rehearse: Rehearse, cluster: Cluster) -> None:
    """Clients begin when each model has answered once, and look at each answer: texts, streams and embeddings."""
    reported = report(rehearse, fleet=TWO)
    assert {service["name"] for service in reported["services"]} == {"llama-8b", "finds"}
    assert (reported["before"]["failed"], reported["peak_clusters"]) == (0, 2)
    assert reported["before"]["answered"] > 20
    assert not OF_IT & namespaces(cluster)


def test_image_that_no_node_has_is_reported_before_anything_is_installed(rehearse: Rehearse, cluster: Cluster) -> None:
    code, said = rehearse("--image=registry.invalid/ray:none", fleet=FLEET)
    assert code == 3
    assert "the nodes do not have image registry.invalid/ray:none" in said
    assert "--image REPOSITORY:TAG" in said
    assert not OF_IT & namespaces(cluster)
