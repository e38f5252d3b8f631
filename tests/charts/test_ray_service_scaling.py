"""How the chart has Serve scale replicas, and how pods lie and stay."""

import json

import pytest

from charts.kit import ENGINE_QUEUE, chat, cluster, llm_config, over, serve_config, worker
from rayhelm.local.serve_config import check_serve_config

STAYS = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}


def scaling(overlay=None):
    return llm_config(overlay)["deployment_config"]["autoscaling_config"]


def test_what_is_left_out_is_rays_default_in_words():
    assert scaling() == {
        "min_replicas": 1,
        "max_replicas": 2,
        "target_ongoing_requests": 64,
        "upscale_delay_s": 30,
        "downscale_delay_s": 600,
        "look_back_period_s": 30,
    }


def test_a_sleeping_model_begins_awake_and_falls_asleep_late():
    overlay = chat(autoscaling={"minReplicas": 0, "initialReplicas": 2, "downscaleToZeroDelaySeconds": 1800})
    assert scaling(overlay)["initial_replicas"] == 2
    assert scaling(overlay)["downscale_to_zero_delay_s"] == 1800


def test_a_custom_application_waits_as_long_as_it_is_told():
    speech = {
        "initialReplicas": 1,
        "upscaleDelaySeconds": 15,
        "downscaleDelaySeconds": 900,
        "lookBackPeriodSeconds": 60,
    }
    overlay = {"serve": {"customApplications": {"own": {"importPath": "a.b:c", "deployments": {"Speech": speech}}}}}
    (own,) = (app for app in serve_config(overlay)["applications"] if app["name"] == "own")
    (deployment,) = own["deployments"]
    assert deployment["autoscaling_config"] == {
        "min_replicas": 1,
        "max_replicas": 1,
        "target_ongoing_requests": 2,
        "initial_replicas": 1,
        "upscale_delay_s": 15,
        "downscale_delay_s": 900,
        "look_back_period_s": 60,
    }


def test_the_policy_of_the_engines_is_named_with_what_it_needs():
    assert scaling(ENGINE_QUEUE)["policy"] == {
        "policy_function": "rayhelm.runtime.engine_queue.policy:EngineQueuePolicy",
        "policy_kwargs": {
            "prometheus_address": "http://prometheus.monitoring:9090",
            "ttft_s": 0.6,
            "goal": 0.95,
            "waiting": 2,
            "window_s": 120,
        },
    }
    assert "ttft_s" not in scaling(without_ttft())["policy"]["policy_kwargs"]


def without_ttft():
    return over(ENGINE_QUEUE, chat(autoscaling={"policy": {"ttftSeconds": 0}}))


def test_another_policy_changes_no_pod():
    """It goes to Serve, so it is an edit in place."""
    assert cluster(ENGINE_QUEUE) == cluster({"image": {"includesRayhelm": True}})


@pytest.mark.serve
@pytest.mark.timeout(300)
@pytest.mark.parametrize("overlay", [ENGINE_QUEUE, without_ttft()], ids=["with TTFT", "queue alone"])
def test_ray_imports_the_policy(overlay):
    assert check_serve_config(json.dumps(serve_config(overlay))) == []


def test_workers_stay_until_ray_ends_them():
    assert worker()["template"]["metadata"]["annotations"] == STAYS
    assert cluster()["headGroupSpec"]["template"]["metadata"]["annotations"] == STAYS


def test_workers_that_may_be_moved_say_nothing():
    movable = worker({"workerGroups": {"gpu": {"evictable": True}}})
    assert "annotations" not in movable["template"]["metadata"]


def test_pods_are_spread_by_themselves_and_within_one_cluster():
    overlay = {"workerGroups": {"gpu": {"spread": {"topology.kubernetes.io/zone": {}, "rack": {"maxSkew": 2}}}}}
    template = worker(overlay)["template"]
    rack, zone = template["spec"]["topologySpreadConstraints"]
    assert (rack["topologyKey"], rack["maxSkew"]) == ("rack", 2)
    assert zone == {
        "topologyKey": "topology.kubernetes.io/zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": template["metadata"]["labels"]},
        "matchLabelKeys": ["ray.io/cluster"],
    }
    assert "topologySpreadConstraints" not in worker()["template"]["spec"]
