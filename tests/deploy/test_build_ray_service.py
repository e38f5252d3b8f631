"""Values of the chart ray-service, built from a plan."""

import pytest
import yaml

from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.values.common.labels import Toleration
from rayhelm.deploy.values.emit import dump_yaml, select_changed
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import FleetError
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load

CLUSTER = "clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, gpuFeatureDiscovery: true}}"
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def values(text: str) -> dict[str, RayServiceValues]:
    loaded = load(text)
    with loaded.document.joined():
        return build_ray_service_values(plan_fleet(loaded))


def one(pool: str, model: str, more: str = CLUSTER) -> RayServiceValues:
    (only,) = values(f"fleet: one\npools: {{pool: {pool}}}\nmodels: {{model: {model}}}\n{more}").values()
    return only


def test_group_has_the_name_of_the_pool_and_the_gpus_of_a_replica() -> None:
    found = one("{gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8}", f"{{source: {LLAMA}, parallelism: {{tensor: 2}}}}")
    assert {name: group.gpu.count for name, group in found.worker_groups.items()} == {"pool": 2}


def test_replica_on_two_nodes_gets_two_pods_with_rdma() -> None:
    found = one(
        "{gpu: H100-SXM-80GB, nodes: 4, gpusPerNode: 8, network: rdma-400g, rdmaResource: rdma/hca}",
        "{source: meta-llama/Llama-3.1-405B-Instruct, context: 16384}",
    )
    group = found.worker_groups["pool"]
    assert (group.gpu.count, group.min_replicas, group.max_replicas) == (8, 2, 2)
    assert group.rdma.resource == "rdma/hca"


def test_replica_on_one_node_gets_no_rdma() -> None:
    pool = "{gpu: H100-SXM-80GB, nodes: 4, gpusPerNode: 8, network: rdma-400g, rdmaResource: rdma/hca}"
    assert one(pool, f"{{source: {LLAMA}}}").worker_groups["pool"].rdma.resource == ""


def test_unlike_hosts_get_one_group_for_each_stage() -> None:
    found = one(
        "{hosts: [{name: a, gpu: RTX-A5000-24GB, nodeSelector: {host: a}}, {name: b, gpu: RTX-A4000-16GB}],"
        " network: ethernet-1g}",
        "{source: Qwen/Qwen3-32B-AWQ, context: 16384}",
    )
    assert list(found.worker_groups) == ["pool-a", "pool-b"]
    assert found.worker_groups["pool-a"].node_selector == {"host": "a"}
    model = found.serve.applications["model"].models["model"]
    assert model.worker_groups == ["pool-a", "pool-b"]


def test_uneven_layer_partition_is_passed_to_vllm() -> None:
    found = one(
        "{hosts: [{name: a, gpu: RTX-A5000-24GB}, {name: b, gpu: RTX-A4000-16GB}], network: ethernet-1g}",
        "{source: Qwen/Qwen3-14B, context: 4096}",
    )
    model = found.serve.applications["model"].models["model"]
    first, second = map(int, str(model.env["VLLM_PP_LAYER_PARTITION"]).split(","))
    assert first > second
    assert model.worker_groups[0] == "pool-a"


def test_gpu_fractions_are_packed_into_gpus() -> None:
    found = values(
        f"""
        fleet: shares
        {CLUSTER}
        pools: {{gpu: {{gpu: L4-24GB, nodes: 2}}}}
        models:
          a: {{source: BAAI/bge-m3, task: embed, service: ai, gpuFraction: 0.6}}
          b: {{source: BAAI/bge-m3, task: embed, service: ai, gpuFraction: 0.6}}
          c: {{source: BAAI/bge-m3, task: embed, service: ai, gpuFraction: 0.4}}
        """
    )["ai"]
    assert found.worker_groups["gpu"].max_replicas == 2
    assert found.serve.applications["a"].models["a"].gpu_fraction == 0.6


CONNECTOR = "kv_transfer_config: {kv_connector: %s, kv_role: kv_both, kv_connector_extra_config: {%s}}"


def test_worker_gets_its_share_of_the_node() -> None:
    pool = "{gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8, cpusPerNode: 96, memoryPerNode: 960GiB}"
    resources = one(pool, f"{{source: {LLAMA}, parallelism: {{tensor: 2}}}}").worker_groups["pool"].resources
    assert (resources.limits.cpu, resources.limits.memory) == ("23", "239Gi")


@pytest.mark.parametrize(
    ("engine", "memory"),
    [
        (CONNECTOR % ("OffloadingConnector", "cpu_bytes_to_use: 17179869184"), "64Gi"),
        ("kv_offloading_size: 16", "64Gi"),
        (CONNECTOR % ("LMCacheConnectorV1", "lmcache.max_local_cpu_size: 10"), "68Gi"),
        (CONNECTOR % ("LMCacheConnectorV1", ""), "48Gi"),
    ],
)
def test_worker_requests_the_memory_of_an_offloaded_cache(engine: str, memory: str) -> None:
    pool = "{gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8}"
    model = f"{{source: {LLAMA}, parallelism: {{tensor: 2}}, engine: {{{engine}}}}}"
    assert one(pool, model).worker_groups["pool"].resources.limits.memory == memory


def test_node_too_small_for_an_offloaded_cache_is_refused() -> None:
    pool = "{gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8, memoryPerNode: 512GiB}"
    model = f"{{source: {LLAMA}, parallelism: {{tensor: 2}}, engine: {{kv_offloading_size: 200}}}}"
    with pytest.raises(FleetError) as caught:
        one(pool, model)
    (problem,) = caught.value.problems
    assert "would have 127 GiB (of the 512 GiB of a node, without 1 for DaemonSets)" in problem.message
    assert problem.fix_text == "memoryPerNode: 865GiB   # with nodes of this memory"


def test_worker_without_room_for_its_shared_memory_is_refused() -> None:
    with pytest.raises(FleetError) as caught:
        one("{gpu: L4-24GB, nodes: 1, memoryPerNode: 1KiB}", f"{{source: {LLAMA}, context: 4096}}")
    (problem,) = caught.value.problems
    assert "and `/dev/shm` needs 8 GiB" in problem.message
    assert problem.fix_text == "memoryPerNode: 9GiB   # with nodes of this memory"


def test_group_gets_image_taints_and_spot_of_the_pool() -> None:
    pool = (
        "{gpu: L4-24GB, nodes: 1, spot: gke, price: 0.2 USD/h, image: {repository: registry.example/ray, tag: '1'},"
        " tolerations: [{key: gpu, effect: NoSchedule}]}"
    )
    group = one(pool, f"{{source: {LLAMA}, context: 4096}}").worker_groups["pool"]
    assert (group.image.repository, group.image.tag, group.spot) == ("registry.example/ray", "1", "gke")
    assert group.tolerations == [Toleration(key="gpu", operator="Exists", effect="NoSchedule")]


def test_missing_api_server_cidrs_are_refused_with_a_command() -> None:
    with pytest.raises(FleetError) as caught:
        one("{gpu: L4-24GB, nodes: 1}", f"{{source: {LLAMA}, context: 4096}}", "clusters: {main: {}}")
    (problem,) = caught.value.problems
    assert "apiServer.cidrs" in problem.message
    assert "kubectl get endpointslices" in problem.fix_text
    assert problem.line == 4


@pytest.mark.parametrize(
    ("address", "namespace", "cidrs", "port"),
    [("redis.state:6380", "state", [], 6380), ("10.1.2.3:6379", "", ["10.1.2.3/32"], 6379)],
)
def test_head_gets_egress_to_its_redis(address: str, namespace: str, cidrs: list[str], port: int) -> None:
    cluster = f"clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}, redis: {{address: '{address}'}}}}}}"
    found = one("{gpu: L4-24GB, nodes: 1}", f"{{source: {LLAMA}, context: 4096}}", cluster)
    assert found.gcs_fault_tolerance.enabled
    redis = found.network_policy.redis
    assert (redis.peer.namespace, redis.cidrs, redis.port) == (namespace, cidrs, port)


def test_no_volume_for_weights_outside_the_hub() -> None:
    model = f"{{source: /mnt/llama, architecture: {LLAMA}, context: 4096}}"
    assert not one("{gpu: L4-24GB, nodes: 1}", model).weights.enabled


def test_other_engine_arguments_are_in_extra() -> None:
    model = f"{{source: {LLAMA}, context: 4096, engine: {{cpu_offload_gb: 4, dtype: half}}}}"
    engine = one("{gpu: L4-24GB, nodes: 1}", model).serve.applications["model"].models["model"].engine
    assert engine.extra == {"cpu_offload_gb": 4}
    assert engine.dtype == "float16"


def test_yaml_has_only_changed_values_and_reads_back() -> None:
    found = one("{gpu: L4-24GB, nodes: 1}", f"{{source: {LLAMA}, context: 4096}}")
    text = dump_yaml(found, "Written by a test.")
    assert text.startswith("# Written by a test.\n")
    assert "deletionDelaySeconds" not in text
    assert yaml.safe_load(text) == select_changed(found)
    assert RayServiceValues.model_validate(yaml.safe_load(text)) == found


def test_hosts_with_the_same_gpu_share_a_group_and_labels() -> None:
    found = one(
        "{network: ethernet-1g, hosts: [{gpu: RTX-3090-24GB, nodeSelector: {room: a, host: x}},"
        " {gpu: RTX-3090-24GB, nodeSelector: {room: a, host: y}}, {name: big, gpu: RTX-4090-24GB}]}",
        "{source: Qwen/Qwen3-8B, context: 4096, replicas: 2}",
    )
    groups = {name: (group.max_replicas, group.node_selector) for name, group in found.worker_groups.items()}
    assert groups == {"pool-rtx-3090-24gb": (2, {"room": "a"})}


def test_worker_has_the_cpus_that_ray_reserves() -> None:
    found = values(
        f"""
        fleet: many
        {CLUSTER}
        pools: {{gpu: {{gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8}}}}
        models:
          a: {{source: BAAI/bge-m3, task: embed, service: ai}}
          b: {{source: BAAI/bge-m3, task: embed, service: ai}}
          c: {{source: BAAI/bge-m3, task: embed, service: ai}}
        """
    )["ai"]
    (group,) = found.worker_groups.values()
    assert int(group.resources.limits.cpu) >= 3 * (1 + 1) + 1


def test_nodes_with_too_few_cpus_are_refused() -> None:
    with pytest.raises(FleetError) as caught:
        one("{gpu: L4-24GB, nodes: 1, cpusPerNode: 2}", f"{{source: {LLAMA}, context: 4096}}")
    (problem,) = caught.value.problems
    assert problem.path == "pools.pool.cpusPerNode"
    assert problem.fix_text == "cpusPerNode: 4   # with nodes of so many CPUs"


def test_groups_with_colliding_names_stay_separate() -> None:
    found = values(
        f"""
        fleet: names
        {CLUSTER}
        pools:
          a: {{hosts: [{{name: b, gpu: L4-24GB}}]}}
          a-b: {{gpu: T4-16GB, nodes: 1}}
        models:
          one: {{source: Qwen/Qwen3-8B, context: 4096, pool: a, service: s}}
          two: {{source: Qwen/Qwen3-0.6B, context: 4096, pool: a-b, service: s}}
        """
    )["s"]
    assert len(found.worker_groups) == 2


def test_stages_on_hosts_with_one_gpu_type_share_a_group() -> None:
    hosts = ", ".join(["{gpu: RTX-3090-24GB}"] * 3)
    found = one(
        f"{{network: ethernet-10g, hosts: [{hosts}]}}",
        "{source: Qwen/Qwen3-32B-AWQ, context: 32768, parallelism: {tensor: 1, pipeline: 2}}",
    )
    (group,) = found.worker_groups.values()
    assert (group.min_replicas, group.gpu.count) == (2, 1)


def test_custom_task_uses_the_application_of_the_fleet() -> None:
    own = "application: {importPath: 'mymodels.ocr:build_app', deployment: Ocr, args: {pages: 4}}"
    found = one("{gpu: L4-24GB, nodes: 1}", f"{{source: Qwen/Qwen3-8B, task: custom, {own}}}")
    application = found.serve.custom_applications["model"]
    assert application.import_path == "mymodels.ocr:build_app"
    assert application.args == {"model": "model", "source": "/models/Qwen/Qwen3-8B/main", "pages": 4}
    assert application.deployments["Ocr"].worker_group == "pool"


def test_custom_task_without_an_application_is_refused() -> None:
    with pytest.raises(FleetError) as caught:
        one("{gpu: L4-24GB, nodes: 1}", "{source: Qwen/Qwen3-8B, task: custom}")
    assert "application: {importPath:" in str(caught.value.problems[0].fix)


def test_small_model_on_a_shared_gpu_changes_no_pod() -> None:
    text = f"""
        fleet: grow
        {CLUSTER}
        pools: {{gpu: {{gpu: L4-24GB, nodes: 1}}}}
        models:
          a: {{source: BAAI/bge-m3, task: embed, service: ai, gpuFraction: 0.3}}
          b: {{source: BAAI/bge-m3, task: embed, service: ai, gpuFraction: 0.3}}
    """
    more = text + "      c: {source: BAAI/bge-m3, task: embed, service: ai, gpuFraction: 0.3}\n"
    assert values(text)["ai"].worker_groups == values(more)["ai"].worker_groups


def test_clients_in_the_namespace_of_an_alias_are_allowed() -> None:
    more = f"{CLUSTER}\nservices: {{model: {{aliases: {{namespace: apps, names: [llm-predictor]}}}}}}"
    found = one("{gpu: L4-24GB, nodes: 1}", f"{{source: {LLAMA}, context: 4096}}", more)
    assert {peer.namespace for peer in found.network_policy.allowed_gateways.values()} == {"gateway", "apps"}


@pytest.mark.parametrize(("nodes", "strategy"), [(1, "None"), (2, "NewCluster")])
def test_upgrade_strategy_depends_on_free_gpus(nodes: int, strategy: str) -> None:
    found = one(f"{{gpu: L4-24GB, nodes: {nodes}}}", f"{{source: {LLAMA}, context: 4096}}")
    assert found.upgrade.strategy == strategy


def test_volume_has_the_size_of_the_fleet_file() -> None:
    more = f"{CLUSTER}\nservices: {{model: {{weightsSize: 500GiB}}}}"
    found = one("{gpu: L4-24GB, nodes: 1}", f"{{source: {LLAMA}, context: 4096}}", more)
    assert found.weights.claim.size == "500Gi"


def test_allowed_gateway_is_the_namespace_of_the_fleet_file() -> None:
    cluster = "clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, gateway: {namespace: edge}}}"
    found = one("{gpu: L4-24GB, nodes: 1}", f"{{source: {LLAMA}, context: 4096}}", cluster)
    assert {peer.namespace for peer in found.network_policy.allowed_gateways.values()} == {"edge"}


def test_single_pod_without_upgrade_gets_read_write_once() -> None:
    alone = one("{gpu: L4-24GB, nodes: 1}", f"{{source: {LLAMA}, context: 4096}}")
    beside = one("{gpu: L4-24GB, nodes: 2}", f"{{source: {LLAMA}, context: 4096}}")
    modes = (alone.weights.claim.access_mode, beside.weights.claim.access_mode)
    assert modes == ("ReadWriteOnce", "ReadWriteMany")


@pytest.mark.parametrize(("replicas", "ingresses"), [("1", (1, 1)), ("2", (2, 2)), ("{min: 1, max: 4}", (1, 2))])
def test_ingress_replicas_follow_model_replicas(replicas: str, ingresses: tuple[int, int]) -> None:
    found = one("{gpu: L4-24GB, nodes: 4}", f"{{source: {LLAMA}, context: 4096, replicas: {replicas}}}")
    (application,) = found.serve.applications.values()
    assert (application.ingress.min_replicas, application.ingress.max_replicas) == ingresses


LARGE = "{gpu: H100-SXM-80GB, nodes: 4, gpusPerNode: 8, network: rdma-400g, rdmaResource: rdma/hca}"
REDIS = "clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, redis: {address: 'redis.state:6379'}}}"


@pytest.mark.parametrize(
    ("pool", "model", "pods", "kept"),
    [
        (LARGE, "{source: meta-llama/Llama-3.1-405B-Instruct, context: 16384}", 2, 0),
        (LARGE, "{source: meta-llama/Llama-3.1-405B-Instruct, context: 16384, replicas: 2}", 4, 1),
        ("{gpu: L4-24GB, nodes: 1}", "{source: Qwen/Qwen3-0.6B, context: 4096}", 1, 0),
        ("{gpu: L4-24GB, nodes: 3}", "{source: Qwen/Qwen3-0.6B, context: 4096, replicas: 3}", 3, 1),
        ("{gpu: L4-24GB, nodes: 3}", "{source: Qwen/Qwen3-0.6B, context: 4096, replicas: {min: 1, max: 3}}", 1, 0),
    ],
    ids=["one-replica-on-two-nodes", "two-replicas-on-two-nodes", "one-pod", "three-pods", "autoscaled-from-one"],
)
def test_budget_of_workers_allows_a_drain(pool: str, model: str, pods: int, kept: int) -> None:
    group = one(pool, model).worker_groups["pool"]
    assert (group.min_replicas, group.min_available) == (pods, kept)


@pytest.mark.parametrize("clusters", [CLUSTER, REDIS], ids=["no-redis", "redis"])
def test_head_has_no_budget(clusters: str) -> None:
    found = one("{gpu: L4-24GB, nodes: 1}", "{source: Qwen/Qwen3-0.6B, context: 4096}", clusters)
    assert found.head.min_available == 0
