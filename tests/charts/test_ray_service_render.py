"""The rendered RayService, one test for each behavior."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from charts.kit import EXAMPLES, FIXED, cluster, env, kinds, only, over, ray_service, rendered, serve_config, worker

MODEL = {"serve": {"applications": {"chat": {"models": {"llama-8b": {}}}}}}
INCREMENTAL = {
    "strategy": "NewClusterWithIncrementalUpgrade",
    "incremental": {"gatewayClassName": "istio", "gatewayService": "chat-gateway-istio.models.svc.cluster.local"},
}


def model(**values):
    return {"serve": {"applications": {"chat": {"models": {"llama-8b": values}}}}}


def test_token_authentication_is_explicit():
    assert cluster()["authOptions"] == {"mode": "token"}
    assert cluster({"auth": {"secretName": "ray-token"}})["authOptions"] == {"mode": "token", "secretName": "ray-token"}


def test_authentication_can_be_off_with_a_reason():
    assert cluster({"auth": {"mode": "disabled", "reason": "a laptop"}})["authOptions"] == {"mode": "disabled"}


@pytest.mark.parametrize("strategy", ["NewCluster", "None"])
def test_upgrade_strategy_is_always_rendered(strategy):
    assert ray_service({"upgrade": {"strategy": strategy}})["spec"]["upgradeStrategy"] == {"type": strategy}


def test_incremental_upgrade_renders_its_steps():
    overlay = {"upgrade": INCREMENTAL, "networkPolicy": {"allowedGateways": {"istio": {"namespace": "models"}}}}
    assert ray_service(overlay)["spec"]["upgradeStrategy"]["clusterUpgradeOptions"] == {
        "gatewayClassName": "istio",
        "stepSizePercent": 25,
        "intervalSeconds": 60,
        "maxSurgePercent": 100,
    }


def test_head_offers_no_resources_and_takes_no_traffic():
    assert ray_service()["spec"]["excludeHeadPodFromServeSvc"] is True
    parameters = cluster()["headGroupSpec"]["rayStartParams"]
    assert (parameters["num-cpus"], parameters["num-gpus"]) == ("0", "0")


def test_ports_have_names_and_follow_the_serve_port():
    ports = {port["name"]: port["containerPort"] for port in head_container({"serve": {"port": 8100}})["ports"]}
    assert ports == {
        "gcs-server": 6379,
        "dashboard": 8265,
        "client": 10001,
        "metrics": 8080,
        "serve": 8100,
        "as-metrics": 44217,
        "dash-metrics": 44227,
    }
    assert serve_config({"serve": {"port": 8100}})["http_options"]["port"] == 8100


def test_autoscaler_is_v2_and_owns_replicas():
    assert cluster()["autoscalerOptions"]["version"] == "v2"
    assert "replicas" not in worker()


def test_groups_are_fixed_when_the_autoscaler_is_off():
    group = worker({"autoscaler": {"enabled": False}, "workerGroups": {"gpu": {"minReplicas": 2, "maxReplicas": 5}}})
    assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (2, 2, 2)
    assert "autoscalerOptions" not in cluster(FIXED)


def test_only_the_autoscaler_mounts_a_token_of_the_api_server():
    head, options = head_spec(), cluster()["autoscalerOptions"]
    assert head["automountServiceAccountToken"] is False
    assert worker()["template"]["spec"]["automountServiceAccountToken"] is False
    (token,) = (each["name"] for each in head["volumes"] if "projected" in each)
    mounted = {each["name"] for container in head["containers"] for each in container["volumeMounts"]}
    assert token not in mounted
    assert token in {each["name"] for each in options["volumeMounts"]}


def test_autoscaler_shares_no_writable_path_with_the_head():
    """Python runs what it finds in HOME, and code of a model can write the paths of the head."""
    head, options = head_spec(), cluster()["autoscalerOptions"]
    mounted = {each["name"] for container in head["containers"] for each in container["volumeMounts"]}
    assert not mounted & {each["name"] for each in options["volumeMounts"]}
    assert {"name": "PYTHONNOUSERSITE", "value": "1"} in options["env"]


def test_autoscaler_is_off_with_a_fixed_number_of_workers():
    two = {"workerGroups": {"gpu": {"minReplicas": 2, "maxReplicas": 2}}}
    assert cluster(two)["enableInTreeAutoscaling"] is False
    assert not [each for each in head_spec(two)["volumes"] if "projected" in each]
    assert worker(two)["replicas"] == 2


def test_autoscaler_runs_with_a_fixed_number_of_workers_and_incremental_upgrade():
    steps = {"gatewayClassName": "istio", "gatewayService": "istio.infra"}
    upgrade = {"strategy": "NewClusterWithIncrementalUpgrade", "incremental": steps}
    two = {"workerGroups": {"gpu": {"minReplicas": 2, "maxReplicas": 2}}}
    assert cluster({**two, "upgrade": upgrade, "test": {"enabled": False}})["enableInTreeAutoscaling"] is True


def test_redis_password_is_a_reference():
    overlay = {
        "gcsFaultTolerance": {"enabled": True, "redisAddress": "redis:6379", "passwordSecret": {"name": "redis"}},
        "networkPolicy": {"redis": {"peer": {"namespace": "redis"}}},
    }
    assert cluster(overlay)["gcsFaultToleranceOptions"] == {
        "redisAddress": "redis:6379",
        "redisPassword": {"valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}},
    }
    assert "gcsFaultToleranceOptions" not in cluster()


@pytest.mark.parametrize(("base", "policy"), [("tp8-pp4-rdma", "keep"), ("minimal", None)])
def test_objects_of_the_redis_cleanup_pod_are_kept(base, policy):
    for kind in ("ServiceAccount", "ConfigMap"):
        annotations = only(rendered(base=base), kind)["metadata"].get("annotations", {})
        assert annotations.get("helm.sh/resource-policy") == policy


@pytest.mark.parametrize("example", EXAMPLES)
def test_ray_gets_the_gpu_count_of_every_group(example):
    """KubeRay counts some resource names only, and the autoscaler needs the count before a pod exists."""
    for group in cluster(base=example)["workerGroupSpecs"]:
        limits = group["template"]["spec"]["containers"][0]["resources"]["limits"]
        gpus = sum(int(count) for name, count in limits.items() if "gpu" in name or "/mig-" in name)
        assert group["resources"]["GPU"] == str(gpus)
        assert "num-gpus" not in group["rayStartParams"]


def test_group_resource_never_ends_in_gpu():
    offered = worker()["resources"]
    assert offered["gpu.worker-group"] == "1"
    assert not [name for name in offered if name != "GPU" and name.lower().endswith("gpu")]


@pytest.mark.parametrize(
    ("gpu", "resource", "label"),
    [
        ({"vendor": "nvidia", "product": "X"}, "nvidia.com/gpu", "nvidia.com/gpu.product"),
        ({"vendor": "amd", "product": "X"}, "amd.com/gpu", "amd.com/gpu.product-name"),
        ({"vendor": "intel", "product": "Max_1550"}, "gpu.intel.com/xe", "gpu.intel.com/product"),
        ({"resource": "nvidia.com/mig-1g.10gb", "product": "X"}, "nvidia.com/mig-1g.10gb", "nvidia.com/gpu.product"),
    ],
)
def test_gpu_vendor_sets_resource_toleration_and_label(gpu, resource, label):
    image = {"repository": "registry.example/ray-vllm", "tag": "2.60.0-py312"}
    spec = worker({"workerGroups": {"gpu": {"gpu": gpu, "image": image}}})["template"]["spec"]
    assert spec["containers"][0]["resources"]["limits"][resource] == "1"
    assert spec["nodeSelector"] == {label: gpu["product"]}
    assert resource in {toleration["key"] for toleration in spec["tolerations"]}


@pytest.mark.parametrize(
    ("spot", "label"),
    [
        ("karpenter", {"karpenter.sh/capacity-type": "spot"}),
        ("eks", {"eks.amazonaws.com/capacityType": "SPOT"}),
        ("gke", {"cloud.google.com/gke-spot": "true"}),
        ("aks", {"kubernetes.azure.com/scalesetpriority": "spot"}),
    ],
)
def test_spot_sets_node_label_and_toleration(spot, label):
    spec = worker({"workerGroups": {"gpu": {"spot": spot}}})["template"]["spec"]
    assert label.items() <= spec["nodeSelector"].items()
    assert set(label) <= {toleration["key"] for toleration in spec["tolerations"]}


def test_network_variables_are_set_per_group():
    groups = cluster(base="unlike-hosts")["workerGroupSpecs"]
    interfaces = {group["groupName"]: env(ray(group))["NCCL_SOCKET_IFNAME"] for group in groups}
    assert interfaces == {"a5000": "eth0", "a4000": "eth1"}
    assert {env(ray(group))["GLOO_SOCKET_IFNAME"] for group in groups} == {"eth0", "eth1"}
    kept = json.loads(only(rendered(), "ConfigMap")["data"]["ray_non_carry_over_env_vars.json"])
    assert {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_IB_HCA", "VLLM_HOST_IP"} <= set(kept)
    assert mounts(ray(groups[0]))[env(ray(groups[0]))["VLLM_CONFIG_ROOT"]] == "vllm-config"


@pytest.mark.parametrize("name", ["RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH", "RAYLLM_VLLM_ENGINE_CLS"])
def test_classes_of_rayhelm_are_set_when_the_image_has_it(name):
    assert name not in env(ray(cluster()["headGroupSpec"]))
    assert name not in env(ray(worker()))
    ours = {"image": {"includesRayhelm": True}}
    module, _, attribute = env(ray(cluster(ours)["headGroupSpec"]))[name].partition(":")
    source = Path(find_spec(module).origin).read_text()
    assert re.search(rf"^(def|class) {attribute}\(", source, re.MULTILINE)
    assert env(ray(worker(ours)))[name] == f"{module}:{attribute}"
    # A proxy or a replica that cannot import it would not start.
    foreign = {**ours, "workerGroups": {"gpu": {"image": {"repository": "registry.example/theirs"}}}}
    assert name not in env(ray(worker(foreign)))


def test_counting_of_tokens_can_be_switched_off():
    off = {"image": {"includesRayhelm": True}, "workerGroups": {"gpu": {"env": {"RAYLLM_VLLM_ENGINE_CLS": ""}}}}
    assert env(ray(worker(off)))["RAYLLM_VLLM_ENGINE_CLS"] == ""


def test_nccl_uses_sockets_without_an_rdma_device():
    fast = ray(worker(base="tp8-pp4-rdma"))
    assert fast["resources"]["limits"]["rdma/hca_shared_devices_a"] == "1"
    assert env(fast)["NCCL_IB_HCA"] == "mlx5"
    assert "NCCL_IB_DISABLE" not in env(fast)
    assert env(ray(worker()))["NCCL_IB_DISABLE"] == "1"


def test_worker_drains_until_10_seconds_before_sigkill():
    spec = worker({"workerGroups": {"gpu": {"terminationGracePeriodSeconds": 300}}})["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] == 300
    assert env(spec["containers"][0])["RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"] == "290"


def test_shared_memory_volume_has_a_size_limit():
    volumes = {volume["name"]: volume for volume in worker()["template"]["spec"]["volumes"]}
    assert volumes["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "8Gi"}
    assert mounts(ray(worker()))["/dev/shm"] == "shm"


@pytest.mark.parametrize(("shm", "bytes_"), [("8Gi", "2147483648"), ("1T", "250000000000"), ("100Mi", "78643200")])
def test_object_store_is_a_quarter_of_shared_memory(shm, bytes_):
    group = worker({"workerGroups": {"gpu": {"shmSize": shm, "resources": {"limits": {"memory": "2Ti"}}}}})
    assert group["rayStartParams"] == {"object-store-memory": bytes_}
    assert cluster()["headGroupSpec"]["rayStartParams"]["object-store-memory"] == "268435456"


@pytest.mark.parametrize(
    ("written", "rendered"),
    [
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5", "500m"),
        ("1000m", "1"),
        ("2000", "2k"),
        ("2048", "2048"),
        ("0.5Ki", "512"),
        ("0.3Gi", "322122547200m"),
        ("64Gi", "64Gi"),
    ],
)
def test_quantities_have_the_form_that_kubernetes_writes(written, rendered):
    """The operator writes the RayService back: Helm 4 cannot apply a quantity in another form again."""
    overlay = {"head": {"cacheSize": written}, "workerGroups": {"gpu": {"cacheSize": written}}}
    for pod in (head_spec(overlay), worker(overlay)["template"]["spec"]):
        (size,) = [item["emptyDir"]["sizeLimit"] for item in pod["volumes"] if item["name"] == "cache"]
        assert size == rendered


def test_disk_volumes_have_size_limits():
    for spec in (worker()["template"]["spec"], head_spec()):
        assert all(volume["emptyDir"]["sizeLimit"] for volume in spec["volumes"] if "emptyDir" in volume)
    volumes = {volume["name"]: volume for volume in head_spec({"head": {"tmpSize": "3Gi"}})["volumes"]}
    assert volumes["tmp"]["emptyDir"] == {"sizeLimit": "3Gi"}


def test_serve_llm_and_proxy_have_the_same_timeout():
    for container in (head_container(), ray(worker())):
        assert env(container)["RAY_SERVE_LLM_ROUTER_HTTP_TIMEOUT"] == "1200"


def test_prompt_logs_and_usage_reports_are_off():
    for container in (head_container(), ray(worker())):
        safe = {
            "RAYLLM_ENABLE_REQUEST_PROMPT_LOGS": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
            "HF_HUB_OFFLINE": "1",
            "VLLM_ALLOW_INSECURE_SERIALIZATION": "0",
            "VLLM_MEDIA_URL_ALLOW_REDIRECTS": "0",
            "VLLM_MAX_N_SEQUENCES": "64",
        }
        assert safe.items() <= env(container).items()


def test_caches_are_on_a_writable_volume():
    container = ray(worker())
    for name in ("HOME", "HF_HOME", "VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME"):
        assert env(container)[name].startswith("/cache"), name
    assert mounts(container)["/cache"] == "cache"


def test_digest_takes_precedence_over_the_tag():
    digest = "sha256:" + "0" * 64
    assert head_container({"image": {"digest": digest}})["image"] == f"rayproject/ray-llm@{digest}"


def test_group_with_an_image_of_its_own_may_have_another_patch_version_of_python():
    level = "RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL"
    own = {"workerGroups": {"gpu": {"image": {"repository": "registry.example/ray-vllm", "tag": "2.60.0-py312"}}}}
    assert env(ray(worker(own)))[level] == "minor"
    assert level not in env(ray(worker()))


def test_group_image_does_not_take_the_common_digest():
    images = {
        "image": {"digest": "sha256:" + "0" * 64},
        "workerGroups": {"gpu": {"image": {"repository": "other/ray", "tag": "1"}}},
    }
    assert ray(worker(images))["image"] == "other/ray:1"


def test_pod_templates_do_not_depend_on_the_chart_version():
    text = json.dumps(cluster())
    assert "helm.sh/chart" not in text
    assert "app.kubernetes.io/version" not in text
    assert "checksum" not in text


def test_new_model_changes_no_pod_template():
    """A new model must apply in place; a changed pod template would start a second cluster."""
    more = {
        "source": "Qwen/Qwen3-8B",
        "engine": {"maxModelLen": 8192, "maxNumSeqs": 32, "maxNumBatchedTokens": 4096},
        "workerGroups": ["gpu"],
        "autoscaling": {"targetOngoingRequests": 16},
    }
    room = {"workerGroups": {"gpu": {"maxReplicas": 3}}}
    overlay = over(room, {"serve": {"applications": {"more": {"models": {"qwen": more}}}}})
    assert cluster(overlay) == cluster(room)
    assert serve_config(overlay) != serve_config(room)


def test_labels_of_values_are_only_on_the_ray_service():
    overlay = {"labels": {"team": "a", "cost": 7}}
    assert ray_service(overlay)["metadata"]["labels"]["cost"] == "7"
    assert cluster(overlay) == cluster()


def test_suspend_is_rendered_only_when_set():
    assert "suspend" not in ray_service()["spec"]
    assert ray_service({"suspend": True})["spec"]["suspend"] is True


def test_name_of_47_characters_is_not_truncated():
    name = "a" * 47
    objects = rendered(release=name)
    assert only(objects, "RayService")["metadata"]["name"] == name
    assert all(len(item["metadata"]["name"]) <= 63 for item in objects)


def test_no_monitor_by_default():
    assert "PodMonitor" not in kinds(rendered())


def head_spec(overlay=None):
    return cluster(overlay)["headGroupSpec"]["template"]["spec"]


def head_container(overlay=None):
    return head_spec(overlay)["containers"][0]


def ray(group):
    return group["template"]["spec"]["containers"][0]


def mounts(container):
    return {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}


def test_cpu_request_can_be_lower_than_the_limit():
    sizes = {"resources": {"limits": {"cpu": 4, "memory": "64Gi"}, "requests": {"cpu": "200m"}}}
    overlay = {"head": sizes, "autoscaler": sizes, "workerGroups": {"gpu": sizes}}
    spec = cluster(overlay)
    pods = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    for resources in (spec["autoscalerOptions"]["resources"], *(_resources(pod) for pod in pods)):
        assert (resources["limits"]["cpu"], resources["requests"]["cpu"]) == ("4", "200m")
        assert resources["limits"]["memory"] == resources["requests"]["memory"]


def test_cpu_request_is_the_limit_by_default():
    resources = _resources(worker())
    assert resources["limits"] == resources["requests"]


def _resources(group):
    return group["template"]["spec"]["containers"][0]["resources"]
