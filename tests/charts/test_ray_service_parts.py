"""Objects that belong to the RayService: weights, network, budgets, monitor, aliases, test."""

import json
from pathlib import Path

import pytest

from charts.kit import ENGINE_QUEUE, FIXED, chat, kinds, llm_config, only, over, ray_service, rendered
from rayhelm.deploy.values.platform.classes import PriorityClasses
from rayhelm.errors import FleetError
from rayhelm.runtime import bucket_download

INCREMENTAL = {
    "strategy": "NewClusterWithIncrementalUpgrade",
    "incremental": {"gatewayClassName": "istio", "gatewayService": "chat-gateway-istio.models.svc.cluster.local"},
}


FAULT_TOLERANT = {"gcsFaultTolerance": {"enabled": True, "redisAddress": "redis:6379"}}


def policies(overlay=None, **options):
    found = [item for item in rendered(overlay, **options) if item["kind"] == "NetworkPolicy"]
    return {item["metadata"]["name"].removeprefix("chat-"): item["spec"] for item in found}


def job(overlay=None, **options):
    return only(rendered(overlay, **options), "Job")


def test_download_path_contains_the_revision():
    (container,) = job()["spec"]["template"]["spec"]["initContainers"]
    path = "/models/meta-llama/Llama-3.1-8B-Instruct/0e9e39f249a16976918f6564b8830bc894c89659"
    assert container["command"][:5] == ["hf", "download", "meta-llama/Llama-3.1-8B-Instruct", "--local-dir", path]
    assert container["command"][5:7] == ["--revision", "0e9e39f249a16976918f6564b8830bc894c89659"]


@pytest.mark.parametrize(
    "overlay",
    [
        {"serve": {"applications": {"chat": {"models": {"llama-8b": {"revision": "1" * 40}}}}}},
        {"serve": {"applications": {"chat": {"models": {"llama-8b": {"source": "Qwen/Qwen3-8B"}}}}}},
        {"image": {"tag": "2.60.0-other"}},
        {"weights": {"download": {"resources": {"limits": {"memory": "9Gi"}}}}},
        {"weights": {"download": {"backoffLimit": 3}}},
    ],
)
def test_job_name_changes_with_its_spec(overlay):
    """A Job is immutable: another spec under the same name would stop an upgrade."""
    assert job(overlay)["spec"] != job()["spec"]
    assert job(overlay)["metadata"]["name"] != job()["metadata"]["name"]


def test_job_name_stays_when_chart_version_or_scale_changes():
    overlay = {"serve": {"applications": {"chat": {"models": {"llama-8b": {"autoscaling": {"maxReplicas": 2}}}}}}}
    assert job(overlay)["metadata"]["name"] == job()["metadata"]["name"]
    assert "helm.sh/chart" not in json.dumps(job()["spec"])


def test_workers_wait_for_the_marker_that_the_job_writes_last():
    (group,) = ray_service()["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    (wait,) = group["template"]["spec"]["initContainers"]
    (complete,) = job()["spec"]["template"]["spec"]["containers"]
    assert wait["command"][-1] == complete["command"][-1] == "/models/.chat-complete"


def test_job_is_not_a_hook_without_a_cluster():
    """tests/cluster tests the hooks that download before an upgrade."""
    assert job(options=("--is-upgrade",)) == job()
    assert "helm.sh/hook" not in job()["metadata"]["annotations"]


def test_job_name_changes_with_the_egress_to_the_hub():
    """A Job that failed for lack of egress would stay failed under the same name."""
    overlay = {"networkPolicy": {"hub": {"cidrs": ["10.2.0.0/16"]}}}
    assert job(overlay)["spec"] == job()["spec"]
    assert job(overlay)["metadata"]["name"] != job()["metadata"]["name"]


def test_argo_cd_downloads_weights_before_the_service():
    wave = "argocd.argoproj.io/sync-wave"
    waves = {item["kind"]: item["metadata"].get("annotations", {}).get(wave) for item in rendered()}
    assert int(waves["Job"]) < int(waves["RayService"])
    assert int(waves["PersistentVolumeClaim"]) <= int(waves["Job"])


MIRROR = {"weights": {"download": {"endpoint": "http://mirror.hub:8080"}}}


def test_job_downloads_from_a_mirror_when_endpoint_is_set():
    (fetch,) = job(MIRROR)["spec"]["template"]["spec"]["initContainers"]
    assert {"name": "HF_ENDPOINT", "value": "http://mirror.hub:8080"} in fetch["env"]
    assert "HF_ENDPOINT" not in json.dumps(only(rendered(MIRROR), "RayService")), "offline servers use no endpoint"
    assert "HF_ENDPOINT" not in json.dumps(rendered())


SUMS = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
AZURE_STORE = {"weights": {"download": {"bucket": {"endpoint": "", "region": ""}}}}
STORE = {"endpoint": "https://s3.example:9000", "region": "eu-1", "credentialsSecret": "bucket-reader"}
BUCKET = {
    **chat(source="s3://acme/llama/v1", revision=SUMS),
    "weights": {"download": {"bucket": STORE}},
    "networkPolicy": {"bucket": {"cidrs": ["10.1.0.0/16"], "ports": [9000]}},
}


def test_job_downloads_from_a_bucket_and_servers_read_the_volume():
    (fetch,) = job(BUCKET)["spec"]["template"]["spec"]["initContainers"]
    path = f"/models/s3/acme/llama/v1/{SUMS}"
    assert fetch["command"][:3] == ["python", "-I", "/etc/rayhelm/bucket_download.py"]
    assert fetch["command"][3:6] == ["--endpoint=https://s3.example:9000", "--region=eu-1", "--secret=bucket-reader"]
    assert fetch["command"][6:] == ["s3://acme/llama/v1", SUMS, path]
    assert llm_config(BUCKET)["model_loading_config"]["model_source"] == path


def test_job_downloads_from_google_with_the_keys_of_the_secret():
    overlay = over(BUCKET, chat(source="gs://acme/llama/v1", revision=SUMS))
    (fetch,) = job(overlay)["spec"]["template"]["spec"]["initContainers"]
    path = f"/models/gs/acme/llama/v1/{SUMS}"
    assert fetch["command"][6:] == ["gs://acme/llama/v1", SUMS, path]
    assert llm_config(overlay)["model_loading_config"]["model_source"] == path


def test_job_downloads_from_azure_with_the_token_of_the_secret_alone():
    source = "azure://models@acme.blob.core.windows.net/llama/v1"
    overlay = over(BUCKET, {**chat(source=source, revision=SUMS), **AZURE_STORE})
    (fetch,) = job(overlay)["spec"]["template"]["spec"]["initContainers"]
    path = f"/models/azure/models@acme.blob.core.windows.net/llama/v1/{SUMS}"
    assert fetch["command"][3:] == ["--secret=bucket-reader", source, SUMS, path]
    secrets = [item["valueFrom"]["secretKeyRef"] for item in fetch["env"] if "valueFrom" in item]
    assert secrets == [{"name": "bucket-reader", "key": "AZURE_STORAGE_SAS_TOKEN"}]
    assert llm_config(overlay)["model_loading_config"]["model_source"] == path


def test_job_mounts_the_program_of_the_chart():
    objects = rendered(BUCKET)
    volumes = only(objects, "Job")["spec"]["template"]["spec"]["volumes"]
    (program,) = [item["configMap"]["name"] for item in volumes if "configMap" in item]
    (found,) = [item for item in objects if (item["kind"], item["metadata"]["name"]) == ("ConfigMap", program)]
    assert found["data"]["bucket_download.py"].strip() == Path(bucket_download.__file__).read_text().strip()
    assert "bucket_download" not in json.dumps(rendered())


@pytest.mark.parametrize(
    ("volume", "path", "message"),
    [
        ("program", "/extra", "the chart has a volume of this name"),
        ("extra", "/etc/rayhelm/extra", "which the pod uses"),
    ],
)
def test_program_of_the_job_is_not_replaced_by_an_extra_volume(volume, path, message):
    extra = {
        "extraVolumes": [{"name": volume, "emptyDir": {}}],
        "extraVolumeMounts": [{"name": volume, "mountPath": path}],
    }
    with pytest.raises(FleetError) as refused:
        rendered(over(BUCKET, {"weights": {"download": extra}}))
    assert message in refused.value.problems[0].message


def test_only_the_job_gets_the_keys_of_the_bucket_and_never_those_of_the_node():
    objects = rendered(BUCKET)
    (fetch,) = only(objects, "Job")["spec"]["template"]["spec"]["initContainers"]
    env = {item["name"]: item for item in fetch["env"]}
    secret = {"name": "bucket-reader", "key": "AWS_SECRET_ACCESS_KEY"}
    assert env["AWS_SECRET_ACCESS_KEY"]["valueFrom"]["secretKeyRef"] == secret
    assert env["AWS_EC2_METADATA_DISABLED"]["value"] == "true"
    assert "bucket-reader" not in json.dumps([item for item in objects if item["kind"] != "Job"])


def test_job_can_have_a_service_account_of_its_own():
    objects = rendered({**BUCKET, "weights": {"download": {"serviceAccount": "weights-reader"}}})
    assert only(objects, "Job")["spec"]["template"]["spec"]["serviceAccountName"] == "weights-reader"
    assert "weights-reader" not in json.dumps(only(objects, "RayService"))


def test_download_reaches_the_bucket_and_not_the_hub():
    (dns, store) = policies(over(BUCKET, {"networkPolicy": {"hub": {"cidrs": []}}}))["download"]["egress"]
    assert ports(dns) == {53}
    assert (store["to"], ports(store)) == ([{"ipBlock": {"cidr": "10.1.0.0/16"}}], {9000})
    hub = policies()["download"]["egress"]
    assert [ports(rule) for rule in hub] == [{53}, {443}]


def test_download_reaches_the_bucket_and_the_hub_when_models_are_in_both():
    tokenizer = {**BUCKET, **chat(source="s3://acme/llama/v1", revision=SUMS, tokenizer="Qwen/Qwen3-8B")}
    assert [ports(rule) for rule in policies(tokenizer)["download"]["egress"]] == [{53}, {443}, {9000}]
    parts = job(tokenizer)["spec"]["template"]["spec"]["initContainers"]
    assert [part["command"][0] for part in parts] == ["hf", "python"]


@pytest.mark.parametrize(
    "change",
    [
        {"networkPolicy": {"bucket": {"cidrs": ["10.2.0.0/16"]}}},
        {"weights": {"download": {"bucket": {"endpoint": "https://other.example"}}}},
        chat(revision="1" * 64),
    ],
)
def test_job_name_changes_with_the_bucket(change):
    assert job(over(BUCKET, change))["metadata"]["name"] != job(BUCKET)["metadata"]["name"]


def test_bucket_without_revision_is_read_by_each_server():
    egress = {"networkPolicy": {"egress": {"bucket": {"cidrs": ["10.1.0.0/16"]}}}}
    overlay = {**chat(source="s3://acme/llama/v1", revision=""), **egress}
    assert llm_config(overlay)["model_loading_config"]["model_source"] == "s3://acme/llama/v1"
    assert "initContainers" not in job(overlay)["spec"]["template"]["spec"]


IMAGE = f"registry.example/models/llama@sha256:{SUMS}"
MODEL_IMAGE = {
    **chat(source="/model-images/llama/weights", revision=""),
    "weights": {"enabled": False, "images": {"llama": {"reference": IMAGE}}},
}


def test_image_with_weights_is_mounted_read_only_in_each_worker():
    objects = rendered(MODEL_IMAGE)
    for group in only(objects, "RayService")["spec"]["rayClusterConfig"]["workerGroupSpecs"]:
        pod = group["template"]["spec"]
        (volume,) = [each for each in pod["volumes"] if "image" in each]
        assert volume["image"] == {"reference": IMAGE, "pullPolicy": "IfNotPresent"}
        (mount,) = [each for each in pod["containers"][0]["volumeMounts"] if each["name"] == volume["name"]]
        assert mount == {"name": volume["name"], "mountPath": "/model-images/llama", "readOnly": True}
    assert llm_config(MODEL_IMAGE)["model_loading_config"]["model_source"] == "/model-images/llama/weights"


def test_image_with_weights_needs_no_download_and_is_not_in_the_head():
    objects = rendered(MODEL_IMAGE)
    assert "Job" not in {item["kind"] for item in objects}
    head = only(objects, "RayService")["spec"]["rayClusterConfig"]["headGroupSpec"]
    assert "model-image" not in json.dumps(head)


def test_online_servers_use_the_mirror():
    online = {"weights": {**MIRROR["weights"], "offline": False, "onlineReason": "no shared volume in this cluster"}}
    spec = ray_service(online)["spec"]["rayClusterConfig"]
    for pod in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        (container,) = pod["template"]["spec"]["containers"]
        assert {"name": "HF_ENDPOINT", "value": "http://mirror.hub:8080"} in container["env"]


def test_mirror_in_the_cluster_can_be_the_only_egress():
    hub = {"peer": {"namespace": "hub", "podLabels": {"app": "mirror"}}, "cidrs": [], "ports": [8080]}
    way = policies({"networkPolicy": {"hub": hub}})["download"]["egress"][1]
    (peer,) = way["to"]
    assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "hub"}
    assert peer["podSelector"]["matchLabels"] == {"app": "mirror"}
    assert [port["port"] for port in way["ports"]] == [8080]


def test_only_the_job_mounts_the_hub_token():
    objects = rendered({"weights": {"download": {"tokenSecret": {"name": "hub"}}}})
    assert "secretKeyRef" in json.dumps(only(objects, "Job"))
    assert "HF_TOKEN" not in json.dumps(only(objects, "RayService"))


def test_hub_tokenizer_is_downloaded_without_weights():
    chat = {"source": "/m", "tokenizer": "Qwen/Qwen3-8B", "tokenizerRevision": "1" * 40}
    overlay = {"serve": {"applications": {"chat": {"models": {"llama-8b": {**chat, "revision": ""}}}}}}
    (container,) = job(overlay)["spec"]["template"]["spec"]["initContainers"]
    path = "/models/Qwen/Qwen3-8B/" + "1" * 40
    assert container["command"][:5] == ["hf", "download", "Qwen/Qwen3-8B", "--local-dir", path]
    assert "*.safetensors" in container["command"]
    assert llm_config(overlay)["model_loading_config"]["tokenizer_source"] == path


def test_tokenizer_of_a_served_model_is_downloaded_with_it():
    tokenizer = {"tokenizer": "meta-llama/Llama-3.1-8B-Instruct", "tokenizerRevision": "0" * 40, "revision": "0" * 40}
    overlay = {"serve": {"applications": {"chat": {"models": {"llama-8b": tokenizer}}}}}
    (container,) = job(overlay)["spec"]["template"]["spec"]["initContainers"]
    assert "*.safetensors" not in container["command"]


def test_job_downloads_models_of_custom_applications():
    parts = job(base="homelab")["spec"]["template"]["spec"]["initContainers"]
    path = "/models/microsoft/speecht5_tts/" + "6" * 40
    assert ["hf", "download", "microsoft/speecht5_tts", "--local-dir", path] in [part["command"][:5] for part in parts]
    assert len(parts) == 6


def test_servers_mount_the_weights_read_only():
    (group,) = ray_service()["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    mount = next(
        item for item in group["template"]["spec"]["containers"][0]["volumeMounts"] if item["name"] == "weights"
    )
    assert mount == {"name": "weights", "mountPath": "/models", "readOnly": True}


def test_existing_claim_is_used():
    objects = rendered(base="tp8-pp4-rdma")
    assert "PersistentVolumeClaim" not in kinds(objects)
    assert '"claimName": "weights-fast"' in json.dumps(only(objects, "RayService"))


def test_claim_is_kept_unless_keep_is_off():
    policy = "helm.sh/resource-policy"
    assert only(rendered(), "PersistentVolumeClaim")["metadata"]["annotations"][policy] == "keep"
    claim = only(rendered({"weights": {"claim": {"keep": False}}}), "PersistentVolumeClaim")
    assert policy not in claim["metadata"]["annotations"]


def test_autoscaler_waits_for_workers_that_wait_for_weights():
    options = ray_service()["spec"]["rayClusterConfig"]["autoscalerOptions"]
    assert {"name": "RAY_AUTOSCALER_RECONCILE_ALLOCATE_STATUS_TIMEOUT_S", "value": "21600"} in options["env"]


def test_no_claim_and_no_job_when_weights_are_off():
    assert not {"PersistentVolumeClaim", "Job"} & kinds(rendered(base="stand-in"))


def test_no_job_when_download_is_off():
    objects = rendered({"weights": {"download": {"enabled": False}}})
    assert "Job" not in kinds(objects)
    assert "wait-for-weights" not in json.dumps(only(objects, "RayService"))


def test_all_traffic_is_denied_by_default():
    deny = policies()["default-deny"]
    assert deny["podSelector"] == {"matchLabels": {"rayhelm.dev/service": "chat"}}
    assert set(deny["policyTypes"]) == {"Ingress", "Egress"}
    assert not deny.get("ingress")
    assert not deny.get("egress")


def test_operator_reaches_only_the_dashboard_of_the_head():
    operator = policies()["head"]["ingress"][0]
    assert operator["from"][0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "kuberay-system"}
    assert operator["from"][0]["podSelector"]["matchLabels"] == {"app.kubernetes.io/component": "kuberay-operator"}
    assert len(operator["from"]) == 1
    assert ports(operator) == {8265}
    assert ray_service()["spec"]["excludeHeadPodFromServeSvc"] is True, "or KubeRay asks the head's proxy too"


def test_prometheus_reaches_the_three_metrics_ports():
    assert ports(policies()["cluster"]["ingress"][1]) == {8080}
    assert ports(policies()["head"]["ingress"][1]) == {44217, 44227}


def test_allowed_gateways_reach_the_serve_port_of_workers():
    gateway = {"namespace": "gateway", "podLabels": {"app": "gateway"}}
    overlay = {"networkPolicy": {"allowedGateways": {"gateway": gateway}}}
    (rule,) = policies(overlay)["worker"]["ingress"]
    assert ports(rule) == {8000}
    namespaces = [peer["namespaceSelector"]["matchLabels"] for peer in rule["from"] if "namespaceSelector" in peer]
    assert namespaces == [{"kubernetes.io/metadata.name": "gateway"}]
    assert ["namespaceSelector" in peer for peer in policies()["worker"]["ingress"][0]["from"]] == [False]


def test_head_reaches_the_api_server_only_with_the_autoscaler():
    (rule,) = policies()["head"]["egress"]
    assert rule["to"] == [{"ipBlock": {"cidr": "10.96.0.1/32"}}]
    assert ports(rule) == {443, 6443}
    assert not policies(FIXED)["head"].get("egress")


def test_head_reaches_prometheus_only_with_the_engine_queue_policy():
    rule = policies(ENGINE_QUEUE)["head"]["egress"][-1]
    (peer,) = rule["to"]
    assert peer == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    assert ports(rule) == {9090}
    others = policies(ENGINE_QUEUE)
    assert "9090" not in json.dumps([policies()["head"], others["worker"], others["cluster"]])


def test_only_the_head_reaches_redis():
    spec = policies(base="tp8-pp4-rdma")
    assert 6379 in ports(spec["head"]["egress"][0])
    assert "6379" not in json.dumps([spec["worker"], spec["cluster"]])


def test_redis_cleanup_pod_keeps_its_egress_after_uninstall():
    policy = only(rendered(base="tp8-pp4-rdma"), "NetworkPolicy", "chat-redis-cleanup")
    assert policy["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert policy["spec"]["podSelector"]["matchLabels"]["ray.io/node-type"] == "redis-cleanup", "and no other pod"
    dns, redis = policy["spec"]["egress"]
    assert redis == policies(base="tp8-pp4-rdma")["head"]["egress"][0]
    assert ports(dns) == {53}
    assert "redis-cleanup" not in policies()


def test_redis_cleanup_pod_is_not_selected_as_head():
    for name in ("cluster", "head"):
        excepted = {"key": "ray.io/node-type", "operator": "NotIn", "values": ["redis-cleanup"]}
        assert excepted in policies(base="tp8-pp4-rdma")[name]["podSelector"]["matchExpressions"], name


def test_no_ingress_to_workers_without_gateway_and_test():
    """An empty list of peers would allow all pods."""
    off = {"test": {"enabled": False}}
    assert "ingress" not in policies(off)["worker"]
    no_peer = off | {"networkPolicy": {"allowedGateways": {"gateway": {"namespace": ""}}}}
    assert "ingress" not in policies(no_peer)["worker"]


def test_offline_servers_have_no_egress():
    assert "ipBlock" not in json.dumps([policies()["worker"], policies()["cluster"]])
    assert ports(policies()["download"]["egress"][1]) == {443}


def test_hub_cidrs_can_have_exceptions():
    hub = policies({"networkPolicy": {"hub": {"except": ["169.254.169.254/32"]}}})["download"]["egress"][1]
    assert hub["to"] == [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.169.254/32"]}}]
    assert policies()["download"]["egress"][1]["to"] == [{"ipBlock": {"cidr": "0.0.0.0/0"}}]


def test_test_pod_reaches_the_gateway_in_incremental_upgrades():
    overlay = {"upgrade": INCREMENTAL, "networkPolicy": {"allowedGateways": {"istio": {"namespace": "models"}}}}
    rule = policies(overlay)["test"]["egress"][2]
    assert ports(rule) == {80}
    assert rule["to"][0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "models"}


def test_peer_with_an_empty_namespace_matches_no_pod():
    overlay = {"networkPolicy": {"operator": {"namespace": ""}, "prometheus": {"namespace": ""}}}
    assert not policies(overlay)["head"].get("ingress")


def test_peer_with_labels_alone_is_in_the_namespace_of_the_release():
    labels = {"rayhelm.dev/gateway": "gateway"}
    gateways = {"gateway": {"podLabels": labels}, "none": {}, "closed": {"namespace": "", "podLabels": labels}}
    overlay = {"test": {"enabled": False}, "networkPolicy": {"allowedGateways": gateways}}
    (rule,) = policies(overlay)["worker"]["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": labels}}]


def test_target_with_labels_alone_is_in_the_namespace_of_the_release():
    labels = {"app": "redis"}
    overlay = FAULT_TOLERANT | {"networkPolicy": {"redis": {"peer": {"podLabels": labels}}}}
    assert policies(overlay)["head"]["egress"][-1]["to"] == [{"podSelector": {"matchLabels": labels}}]


def test_alias_in_the_namespace_of_the_release_is_reached_by_pods_with_labels():
    overlay = {
        "aliases": {"llm-predictor": {}},
        "networkPolicy": {"allowedGateways": {"own": {"podLabels": {"a": "b"}}}},
    }
    assert only(rendered(overlay), "Service", "llm-predictor")


def test_policies_select_pods_by_constant_labels():
    for name, spec in policies().items():
        assert spec["podSelector"]["matchLabels"] == {"rayhelm.dev/service": "chat"}, name


def test_policies_can_be_off_with_a_reason():
    assert "NetworkPolicy" not in kinds(rendered({"networkPolicy": {"enabled": False, "reason": "a laptop"}}))


@pytest.mark.parametrize(
    ("overlay", "mode"),
    [
        ({}, "ReadWriteMany"),
        (over(FIXED, {"upgrade": {"strategy": "None"}}), "ReadWriteOnce"),
        (FIXED, "ReadWriteMany"),
        ({"upgrade": {"strategy": "None"}}, "ReadWriteMany"),
        ({"weights": {"claim": {"accessMode": "ReadWriteOnce"}}}, "ReadWriteOnce"),
    ],
    ids=["several-workers", "one-worker", "upgraded-beside", "may-grow", "stated"],
)
def test_claim_is_read_write_once_when_one_pod_mounts_it(overlay, mode):
    assert only(rendered(overlay), "PersistentVolumeClaim")["spec"]["accessModes"] == [mode]


def budgets(overlay=None, **options):
    found = (item for item in rendered(overlay, **options) if item["kind"] == "PodDisruptionBudget")
    return {item["metadata"]["name"]: item for item in found}


def group(**settings):
    return {"workerGroups": {"gpu": {"maxReplicas": 8, **settings}}}


def test_budgets_are_integers_and_select_constant_labels():
    found = budgets(over(group(minReplicas=2), {"head": {"minAvailable": 1}}))
    assert found.keys() == {"chat-head", "chat-worker-gpu"}
    for budget in found.values():
        assert type(budget["spec"]["minAvailable"]) is int
        assert "maxUnavailable" not in budget["spec"]
        assert "rayhelm.dev/role" in budget["spec"]["selector"]["matchLabels"]
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_no_budget_when_min_available_is_zero():
    assert not budgets({**group(minReplicas=2), "podDisruptionBudget": {"enabled": False}})
    assert not budgets(group(minReplicas=2, minAvailable=0))


def test_no_budget_protects_batch_workers_from_serving():
    """Kubernetes preempts pods without a budget before pods of a lower class with one."""
    assert budgets(group(minReplicas=2, priorityClassName="rayhelm-workers")).keys() == {"chat-worker-gpu"}
    assert not budgets(group(minReplicas=2, priorityClassName=PriorityClasses().batch.name))


@pytest.mark.parametrize(
    ("settings", "engine"),
    [
        ({}, {}),
        ({"minReplicas": 2, "minAvailable": 2}, {}),
        ({"minReplicas": 2}, {"pipelineParallelSize": 2}),
        ({"minReplicas": 1, "numOfHosts": 2}, {"pipelineParallelSize": 2}),
    ],
    ids=["lone-worker", "budget-of-all", "one-replica-on-two-pods", "one-replica-on-two-hosts"],
)
def test_no_budget_when_no_drain_could_end(settings, engine):
    assert not budgets(over(group(**settings), chat(engine=engine)))


def test_head_has_no_budget_by_default():
    assert "chat-head" not in budgets()


def test_monitor_scrapes_three_ports_and_keeps_labels():
    monitor = only(rendered(base="single-8b"), "PodMonitor")
    assert [endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]] == [
        "metrics",
        "as-metrics",
        "dash-metrics",
    ]
    assert "rayhelm.dev/service" in monitor["spec"]["podTargetLabels"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"


def test_aliases_point_to_the_serve_service():
    aliases = [item for item in rendered(base="homelab", release="ai-inference") if item["kind"] == "Service"]
    assert {item["metadata"]["name"] for item in aliases} == {
        f"{name}-predictor" for name in ("llm", "whisper", "tts", "embeddings", "reranker")
    }
    assert {item["metadata"]["namespace"] for item in aliases} == {"ai-ml"}
    assert {item["spec"]["externalName"] for item in aliases} == {"ai-inference-serve-svc.models.svc.cluster.local"}


def test_aliases_and_test_use_the_gateway_in_incremental_upgrades():
    gateways = {"allowedGateways": {"istio": {"namespace": "models"}}}
    objects = rendered({"upgrade": INCREMENTAL, "aliases": {"llm-predictor": {}}, "networkPolicy": gateways})
    assert only(objects, "Service")["spec"]["externalName"] == "chat-gateway-istio.models.svc.cluster.local"
    assert only(objects, "Pod")["spec"]["containers"][0]["command"][-1].startswith(
        "http://chat-gateway-istio.models.svc"
    )


def test_test_pod_requests_one_token_from_each_model():
    pod = only(rendered(), "Pod")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    command = pod["spec"]["containers"][0]["command"]
    assert command[-1] == "http://chat-serve-svc.models.svc.cluster.local:8000/chat/v1/completions"
    body = next(part for part in command if part.startswith("--post-data=")).removeprefix("--post-data=")
    assert json.loads(body) == {"model": "llama-8b", "prompt": "ping", "max_tokens": 1}


def test_test_pod_sends_the_request_of_each_task():
    urls = [container["command"][-1] for container in only(rendered(base="homelab"), "Pod")["spec"]["containers"]]
    assert [url.split(":8000")[1] for url in urls] == [
        "/embeddings/v1/embeddings",
        "/llm/v1/completions",
        "/reranker/v1/score",
        "/whisper/v1/models/whisper-large-v3",
    ]


def test_existing_service_account_is_used():
    objects = rendered({"serviceAccount": {"create": False, "name": "mine"}})
    assert "ServiceAccount" not in kinds(objects)
    assert '"serviceAccountName": "mine"' in json.dumps(only(objects, "RayService"))


def test_pull_secrets_are_in_every_pod():
    objects = rendered({"imagePullSecrets": [{"name": "registry"}]})
    text = json.dumps(objects)
    assert text.count('"imagePullSecrets": [{"name": "registry"}]') == 4


def ports(rule):
    return {port["port"] for port in rule["ports"]}
