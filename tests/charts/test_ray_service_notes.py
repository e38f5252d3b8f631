"""What `helm install` says at its end. Helm 3 wants a cluster even for a dry run: tests/cluster
finds that it says the same."""

import json
import subprocess

import pytest

from charts.kit import HELMS, example, over
from rayhelm.charts.helm import charts_dir


@pytest.fixture
def notes(tmp_path):
    def say(overlay=None):
        file = tmp_path / "values.json"
        file.write_text(json.dumps(over(example("minimal"), overlay or {})))
        command = [
            "install",
            "chat",
            charts_dir() / "ray-service",
            "--namespace",
            "models",
            "--dry-run=client",
            "-f",
            file,
        ]
        done = subprocess.run([HELMS["4"], *command], capture_output=True, text=True, check=True)
        return done.stdout.partition("NOTES:")[2]

    return say


def test_they_name_the_endpoint_of_each_model(notes):
    assert "llama-8b: http://chat-serve-svc.models.svc.cluster.local:8000/chat/v1" in notes()


def test_they_say_what_is_to_be_filled_in(notes):
    overlay = {"serve": {"applications": {"chat": {"models": {"llama-8b": {"revision": ""}}}}}}
    assert "FILL IN image.digest" in notes()
    assert "FILL IN the revision of llama-8b" in notes(overlay)
    assert "revision of" not in notes()


def test_they_say_what_outlives_the_release_and_what_may_stop_an_upgrade(notes):
    assert "delete pvc chat-weights" in notes()
    assert "delete pvc" not in notes({"weights": {"claim": {"keep": False}}})
    assert "networkPolicy.hub" in notes()


def test_they_say_what_can_go_once_redis_is_emptied(notes):
    redis = {
        "gcsFaultTolerance": {"enabled": True, "redisAddress": "redis:6379"},
        "networkPolicy": {"redis": {"peer": {"namespace": "redis"}}},
    }
    assert "delete configmap/chat-vllm serviceaccount/chat networkpolicy/chat-redis-cleanup\n" in notes(redis)
    mine = {"serviceAccount": {"create": False, "name": "mine"}, "networkPolicy": {"enabled": False, "reason": "x"}}
    assert "delete configmap/chat-vllm\n" in notes(over(redis, mine))
    assert "Redis" not in notes()


def test_they_ask_to_check_where_the_operator_runs(notes):
    assert "networkPolicy.operator.namespace is kuberay-system" in notes()


def test_they_say_that_the_token_changes_unless_a_secret_is_named(notes):
    assert "changes at upgrades" in notes()
    assert "changes at upgrades" not in notes({"auth": {"secretName": "ray-token"}})


def test_they_say_that_the_endpoint_asks_nobody_for_a_key(notes):
    assert "No gateway is named yet" in notes()
    assert "No gateway is named yet" not in notes(
        {"networkPolicy": {"allowedGateways": {"door": {"namespace": "gateway"}}}}
    )


def test_they_say_what_an_edit_of_the_pods_does_under_each_strategy(notes):
    assert "builds a new cluster beside the old one (NewCluster)" in notes()
    untouched = notes({"upgrade": {"strategy": "None"}})
    assert "changes nothing (upgrade.strategy is None)" in untouched
    assert "beside the old one" not in untouched
