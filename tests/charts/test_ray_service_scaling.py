"""Autoscaling of replicas, and eviction and spreading of pods."""

import json

import pytest

from charts.kit import ENGINE_QUEUE, INGRESS_ON_CPUS, chat, cluster, llm_config, over, serve_config, worker
from rayhelm.check.lint.serve_config import check_serve_config

STAYS = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}


def scaling(overlay=None):
    return llm_config(overlay)["deployment_config"]["autoscaling_config"]


def test_absent_scaling_values_render_the_defaults():
    assert scaling() == {
        "min_replicas": 1,
        "max_replicas": 2,
        "target_ongoing_requests": 64,
        "upscale_delay_s": 30,
        "downscale_delay_s": 600,
        "look_back_period_s": 30,
    }


def test_model_scales_to_zero_after_its_own_delay():
    zero = {"minReplicas": 0, "initialReplicas": 2, "downscaleToZeroDelaySeconds": 1800}
    overlay = over(INGRESS_ON_CPUS, chat(autoscaling=zero))
    assert scaling(overlay)["initial_replicas"] == 2
    assert scaling(overlay)["downscale_to_zero_delay_s"] == 1800


def test_ingress_requests_a_resource_of_its_worker_group():
    (application,) = serve_config(INGRESS_ON_CPUS)["applications"]
    ingress = application["args"]["ingress_deployment_config"]
    assert ingress["ray_actor_options"] == {"num_cpus": 1, "resources": {"ingress.worker-group": 0.001}}
    _, group = cluster(INGRESS_ON_CPUS)["workerGroupSpecs"]
    assert group["resources"] == {"GPU": "0", "ingress.worker-group": "1"}


def test_ingress_names_no_resource_without_a_worker_group():
    (application,) = serve_config()["applications"]
    assert "ray_actor_options" not in application["args"]["ingress_deployment_config"]


def test_workers_without_weights_wait_for_no_download():
    gpu, ingress = (group["template"]["spec"] for group in cluster(INGRESS_ON_CPUS)["workerGroupSpecs"])
    assert gpu["initContainers"][0]["name"] == "wait-for-weights"
    assert "initContainers" not in ingress
    assert {each["name"] for each in gpu["volumes"]} - {each["name"] for each in ingress["volumes"]} == {"weights"}
    mounts = [{each["name"] for each in spec["containers"][0]["volumeMounts"]} for spec in (gpu, ingress)]
    assert mounts[0] - mounts[1] == {"weights"}


@pytest.mark.serve
def test_ray_accepts_the_placement_of_the_ingress():
    assert check_serve_config(json.dumps(serve_config(INGRESS_ON_CPUS))) == []


def test_custom_application_renders_its_delays():
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


def test_engine_queue_policy_renders_its_arguments():
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


def test_policy_change_changes_no_pod_template():
    """The policy is part of the Serve configuration, so an edit applies in place."""
    assert cluster(ENGINE_QUEUE) == cluster({"image": {"includesRayhelm": True}})


@pytest.mark.serve
@pytest.mark.parametrize("overlay", [ENGINE_QUEUE, without_ttft()], ids=["with TTFT", "queue alone"])
def test_ray_imports_the_policy(overlay):
    assert check_serve_config(json.dumps(serve_config(overlay))) == []


def test_workers_are_not_evictable_by_default():
    assert worker()["template"]["metadata"]["annotations"] == STAYS
    assert cluster()["headGroupSpec"]["template"]["metadata"]["annotations"] == STAYS


def test_evictable_workers_have_no_eviction_annotations():
    movable = worker({"workerGroups": {"gpu": {"evictable": True}}})
    assert "annotations" not in movable["template"]["metadata"]


def test_spread_counts_pods_of_one_ray_cluster():
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
        "nodeTaintsPolicy": "Honor",
    }
    assert "topologySpreadConstraints" not in worker()["template"]["spec"]
