"""NOTES of the chart ray-service. Helm 3 needs a cluster even for a dry run: tests/cluster compares its notes."""

import json
import subprocess

import pytest

from charts.kit import HELMS, example, over
from rayhelm.deploy.charts.helm import charts_dir


@pytest.fixture
def notes(tmp_path):
    def install(overlay=None):
        file = tmp_path / "values.json"
        file.write_text(json.dumps(over(example("minimal"), overlay or {})))
        options = ["--namespace", "models", "--dry-run=client", "-f", file]
        done = subprocess.run(
            [HELMS["4"], "install", "chat", charts_dir() / "ray-service", *options],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.partition("NOTES:")[2]

    return install


def test_notes_name_the_endpoint_of_each_model(notes):
    assert "llama-8b: http://chat-serve-svc.models.svc.cluster.local:8000/chat/v1" in notes()


def test_notes_have_the_commands_that_wait_for_the_models(notes):
    """`helm --wait` of Helm 4.2.3 returns at once for a RayService."""
    assert "kubectl -n models wait rayservice/chat --for=condition=Ready" in notes()
    assert "helm test chat -n models" in notes()


def test_notes_ask_for_digest_and_revision_when_missing(notes):
    overlay = {"serve": {"applications": {"chat": {"models": {"llama-8b": {"revision": ""}}}}}}
    assert "Set image.digest" in notes()
    assert "Set the revision of llama-8b" in notes(overlay)
    assert "revision of" not in notes()


def test_notes_name_the_kept_claim_and_the_egress_of_the_download(notes):
    assert "delete pvc chat-weights" in notes()
    assert "delete pvc" not in notes({"weights": {"claim": {"keep": False}}})
    assert "networkPolicy.hub" in notes()


def test_notes_list_objects_to_delete_after_redis_cleanup(notes):
    redis = {
        "gcsFaultTolerance": {"enabled": True, "redisAddress": "redis:6379"},
        "networkPolicy": {"redis": {"peer": {"namespace": "redis"}}},
    }
    assert "delete configmap/chat-vllm serviceaccount/chat networkpolicy/chat-redis-cleanup\n" in notes(redis)
    mine = {"serviceAccount": {"create": False, "name": "mine"}, "networkPolicy": {"enabled": False, "reason": "x"}}
    assert "delete configmap/chat-vllm\n" in notes(over(redis, mine))
    assert "Redis" not in notes()


def test_notes_name_the_namespace_of_the_operator(notes):
    assert "networkPolicy.operator.namespace is kuberay-system" in notes()
    assert 'with the labels {"app.kubernetes.io/component":"kuberay-operator"}: otherwise' in notes()


def test_notes_warn_that_the_token_changes_without_a_secret(notes):
    assert "changes at upgrades" in notes()
    assert "changes at upgrades" not in notes({"auth": {"secretName": "ray-token"}})


def test_notes_warn_when_no_gateway_is_allowed(notes):
    assert "networkPolicy.allowedGateways is empty" in notes()
    assert "networkPolicy.allowedGateways is empty" not in notes(
        {"networkPolicy": {"allowedGateways": {"http": {"namespace": "gateway"}}}}
    )


def test_notes_describe_the_effect_of_pod_changes_by_strategy(notes):
    assert "next to the old one (NewCluster)" in notes()
    unchanged = notes({"upgrade": {"strategy": "None"}})
    assert "(upgrade.strategy is None)" in unchanged
    assert "next to the old one" not in unchanged
