"""What the planner decides, and that it says why."""

import pytest
import yaml

from rayhelm.errors import FleetError
from rayhelm.planner.plan import ModelPlan
from shared.fleets import one, plan, refused

LAB = "{hosts: [{name: big, gpu: RTX-A5000-24GB}, {name: small, gpu: RTX-A4000-16GB}], network: ethernet-1g}"
H100 = "{gpu: H100-SXM-80GB, nodes: 4, gpusPerNode: 8, network: rdma-400g, rdmaResource: rdma/hca}"
LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
LLAMA_70B = "meta-llama/Llama-3.1-70B-Instruct"
LLAMA_405B = "meta-llama/Llama-3.1-405B-Instruct"
BUSY = "traffic: {requestsPerSecond: %s, inputTokens: 800, outputTokens: 200, sharedPrefix: %s}"


def because(model: ModelPlan, decision: str) -> str:
    return next(reason.because for reason in model.reasons if reason.decision == decision)


def test_plan_gives_a_reason_for_every_decision() -> None:
    model = one("{gpu: L4-24GB, nodes: 1}", f"{{source: {LLAMA_8B}, context: 8192}}")
    decided = {reason.decision for reason in model.reasons}
    assert decided >= {
        "pool",
        "memory",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "max_model_len",
        "max_num_seqs",
        "replicas",
        "routing",
        "price_per_hour",
    }
    assert all(reason.because for reason in model.reasons)


def test_two_workstations_serve_the_32b_with_pipeline_parallelism() -> None:
    model = one(LAB, "{source: Qwen/Qwen3-32B-AWQ, context: 16384}")
    assert (model.tensor_parallel_size, model.pipeline_parallel_size) == (1, 2)
    assert model.gpu == "RTX-A5000-24GB+RTX-A4000-16GB"
    assert [stage.layers for stage in model.stages] == [32, 32]
    assert [stage.host for stage in model.stages] == ["big", "small"]
    assert all(stage.weights_gib > 8 and stage.kv_gib > 2 for stage in model.stages)
    assert "tensor parallelism would do so twice per layer" in because(model, "pipeline_parallel_size")


def test_plan_does_not_depend_on_the_order_of_hosts() -> None:
    turned = LAB.replace(
        "{name: big, gpu: RTX-A5000-24GB}, {name: small, gpu: RTX-A4000-16GB}",
        "{name: small, gpu: RTX-A4000-16GB}, {name: big, gpu: RTX-A5000-24GB}",
    )
    assert turned != LAB
    model = one(turned, "{source: Qwen/Qwen3-32B-AWQ, context: 16384}")
    assert model.pipeline_parallel_size == 2
    assert "fits in every order of the stages" in because(model, "pipeline_parallel_size")


@pytest.mark.parametrize("gpu", ["RTX-A5000-24GB", "RTX-A4000-16GB"])
def test_32b_at_16k_fits_neither_workstation_alone(gpu: str) -> None:
    problem = refused(f"{{gpu: {gpu}, nodes: 1}}", "{source: Qwen/Qwen3-32B-AWQ, context: 16384}")
    assert "fits in no pool" in problem.message
    assert problem.fix
    assert problem.line


def test_14b_in_16_bits_fits_two_workstations_with_uneven_layers() -> None:
    model = one(LAB, "{source: Qwen/Qwen3-14B, context: 4096}")
    assert model.pipeline_parallel_size == 2
    assert model.hosts == ("big", "small")
    first, second = model.layer_partition
    assert first > second
    assert first + second == 40
    assert "starts on `big`" in because(model, "pipeline_parallel_size")


def test_14b_in_4_bits_fits_either_workstation() -> None:
    assert one(LAB, "{source: Qwen/Qwen3-14B-AWQ, context: 4096}").gpus == 1


@pytest.mark.parametrize(("gpu", "least"), [("RTX-4090-24GB", 8192), ("H100-SXM-80GB", 131072)])
def test_8b_in_16_bits_fits_one_gpu_with_the_longest_context_that_fits(gpu: str, least: int) -> None:
    model = one(f"{{gpu: {gpu}, nodes: 1}}", f"{{source: {LLAMA_8B}}}")
    assert model.gpus == 1
    assert model.max_model_len >= least
    reason = because(model, "max_model_len")
    assert (
        "the longest context of the model; it fits" if model.max_model_len == 131072 else "longest context that fits"
    ) in reason


def test_70b_in_16_bits_uses_four_h100_when_its_context_needs_them() -> None:
    model = one(H100, f"{{source: {LLAMA_70B}, context: 32768}}")
    assert (model.tensor_parallel_size, model.pipeline_parallel_size) == (4, 1)


def test_405b_uses_two_nodes_when_nothing_is_pinned() -> None:
    model = one(H100, f"{{source: {LLAMA_405B}, context: 16384}}")
    assert (model.tensor_parallel_size, model.pipeline_parallel_size, model.gpus) == (8, 2, 16)
    assert model.pinned == ()


def test_405b_can_be_pinned_to_four_nodes_and_the_plan_says_so() -> None:
    model = one(H100, f"{{source: {LLAMA_405B}, context: 16384, parallelism: {{tensor: 8, pipeline: 4}}}}")
    assert (model.pipeline_parallel_size, model.gpus, model.nodes_per_replica) == (4, 32, 4)
    assert model.pinned == ("parallelism",)
    assert because(model, "pipeline_parallel_size") == "pinned in the fleet file"


def test_405b_in_8_bits_fits_one_node() -> None:
    model = one(H100, f"{{source: {LLAMA_405B}-FP8, context: 16384}}")
    assert (model.tensor_parallel_size, model.pipeline_parallel_size) == (8, 1)


def test_replica_is_not_split_over_a_slow_network() -> None:
    problem = refused("{gpu: RTX-4090-24GB, nodes: 12, network: internet}", f"{{source: {LLAMA_70B}, context: 4096}}")
    assert "fits in no pool" in problem.message


def test_measured_network_changes_the_plan() -> None:
    pool = "{gpu: RTX-4090-24GB, nodes: 12, network: lan}"
    more = "networks: {lan: {bandwidth: 10Gbit/s, measured: true}}"
    model = one(pool, "{source: Qwen/Qwen3-32B, context: 4096}", more)
    assert model.pipeline_parallel_size > 1
    assert "measured" in because(model, "pipeline_parallel_size")


def test_replicas_grow_with_the_load() -> None:
    pool = "{gpu: RTX-4090-24GB, nodes: 12, network: internet}"
    traffic = "traffic: {requestsPerSecond: %s, inputTokens: 800, outputTokens: 200}"
    few = one(pool, f"{{source: Qwen/Qwen3-8B, context: 8192, {traffic % 1}}}")
    many = one(pool, f"{{source: Qwen/Qwen3-8B, context: 8192, {traffic % 20}}}")
    assert 1 == few.replicas < many.replicas <= 12
    assert (many.min_replicas, many.max_replicas) == (1, many.replicas)


def test_load_that_needs_more_gpus_is_refused_with_fixes() -> None:
    problem = refused(
        "{gpu: RTX-4090-24GB, nodes: 2, network: internet}",
        f"{{source: Qwen/Qwen3-8B, context: 8192, {BUSY % (100, 0)}}}",
    )
    assert "has room for 2" in problem.message
    assert "requestsPerSecond:" in str(problem)
    assert "replicas: 2" in str(problem)


def test_prefix_affinity_needs_a_shared_prefix_and_two_replicas() -> None:
    pool = "{gpu: RTX-4090-24GB, nodes: 12, network: internet}"
    model = f"{{source: Qwen/Qwen3-8B, context: 8192, {BUSY}}}"
    assert one(pool, model % (20, 0.7)).routing == "prefix-affinity"
    assert one(pool, model % (20, 0.0)).routing == "least-loaded"
    assert one(pool, model % (0.5, 0.7)).routing == "least-loaded"


def test_embeddings_are_never_routed_by_prefix() -> None:
    model = f"{{source: BAAI/bge-m3, task: embed, replicas: 3, {BUSY % (20, 0.9)}}}"
    assert one("{gpu: L4-24GB, nodes: 3}", model).routing == "least-loaded"


def test_cheaper_pool_is_chosen_when_both_meet_the_slo() -> None:
    both = plan(
        f"""
        fleet: two
        pools:
          dear: {{gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8}}
          cheap: {{gpu: L40S-48GB, nodes: 1, gpusPerNode: 2}}
        models:
          chat: {{source: {LLAMA_8B}, context: 8192}}
        """
    ).models["chat"]
    assert both.pool == "cheap"
    assert "lowest price" in because(both, "pool")


def test_faster_gpu_is_chosen_when_only_it_meets_the_slo() -> None:
    chosen = plan(
        f"""
        fleet: two
        pools:
          fast: {{gpu: H100-SXM-80GB, nodes: 1}}
          slow: {{gpu: L4-24GB, nodes: 1}}
        models:
          chat: {{source: {LLAMA_8B}, context: 8192, slo: {{tpot: 20ms}}, {BUSY % (1, 0)}}}
        """
    ).models["chat"]
    assert chosen.pool == "fast"


def test_small_models_of_one_service_share_a_gpu() -> None:
    found = plan(
        """
        fleet: share
        pools: {gpu: {gpu: L4-24GB, nodes: 1}}
        models:
          embed: {source: BAAI/bge-m3, task: embed, service: ai}
          rerank: {source: BAAI/bge-reranker-v2-m3, task: rerank, service: ai}
        """
    )
    shares = [model.gpu_fraction for model in found.models.values()]
    assert all(share < 1 for share in shares)
    assert sum(shares) <= 1
    for model in found.models.values():
        assert model.gpu_memory_utilization <= model.gpu_fraction
    assert found.pools["gpu"].used == pytest.approx(sum(shares))


def test_unknown_price_stays_unknown_with_a_reason() -> None:
    model = one(LAB, "{source: Qwen/Qwen3-32B-AWQ, context: 16384}")
    assert model.price_per_hour is None
    assert model.price_per_million_output_tokens is None
    assert any("price of RTX-A5000-24GB" in gap for gap in model.unknown)


LMCACHE = "kv_transfer_config: {kv_connector: LMCacheConnectorV1, kv_role: kv_both, kv_connector_extra_config: {%s}}"


@pytest.mark.parametrize(
    ("engine", "is_unknown"),
    [
        (LMCACHE % "", True),
        (LMCACHE % "lmcache.max_local_cpu_size: 8", False),
        ("kv_offloading_size: -3", True),
        ("kv_offloading_size: 3", False),
    ],
)
def test_size_of_an_offloaded_cache_is_unknown_unless_stated(engine: str, is_unknown: bool) -> None:
    model = one(LAB, f"{{source: Qwen/Qwen3-32B-AWQ, context: 16384, engine: {{{engine}}}}}")
    assert any("state no size above 0" in gap for gap in model.unknown) == is_unknown


def test_price_of_the_pool_is_used() -> None:
    traffic = "traffic: {requestsPerSecond: 1, inputTokens: 500, outputTokens: 100}"
    model = one("{gpu: L4-24GB, nodes: 1, price: 0.36 USD/h}", f"{{source: {LLAMA_8B}, context: 4096, {traffic}}}")
    assert model.price_per_hour == pytest.approx(0.36)
    assert model.price_per_million_output_tokens == pytest.approx(0.36 / (100 * 3600) * 1e6)


def test_gpus_without_bfloat16_use_dtype_half() -> None:
    model = one("{gpu: T4, nodes: 1}", "{source: Qwen/Qwen2.5-0.5B-Instruct, context: 4096}")
    assert model.engine["dtype"] == "half"


def test_license_that_forbids_commercial_use_is_a_warning() -> None:
    own = "application: {importPath: a.b:c, deployment: D}, memory: {weights: 2GiB, kvPerToken: 1KiB}"
    model = one("{gpu: L4-24GB, nodes: 1}", f"{{source: coqui/XTTS-v2, context: 512, task: custom, {own}}}")
    assert [warning for warning in model.warnings if "license" in warning] == [
        "the license of coqui/XTTS-v2 (Coqui Public Model License 1.0.0): commercial use is forbidden, and the company"
        " that could allow it closed in 2024"
    ]


def test_model_without_a_revision_gets_a_warning() -> None:
    model = one("{gpu: L4-24GB, nodes: 1}", f"{{source: {LLAMA_8B}, context: 4096}}")
    assert any("no `revision`" in warning for warning in model.warnings)


def test_engine_arguments_can_be_pinned() -> None:
    model = one(
        "{gpu: L4-24GB, nodes: 1}",
        f"{{source: {LLAMA_8B}, context: 4096, engine: {{max_num_seqs: 24, enforce_eager: true}}}}",
    )
    assert model.max_num_seqs == 24
    assert model.engine["enforce_eager"] is True
    assert model.pinned == ("engine.enforce_eager", "engine.max_num_seqs")


@pytest.mark.parametrize(
    ("pool", "model", "says"),
    [
        ("{gpu: H100-SXM-81GB, nodes: 1}", f"{{source: {LLAMA_8B}}}", "H100"),
        ("{gpu: L4-24GB, nodes: 1}", "{source: meta-llama/Llama-3.1-9B}", "Llama-3.1"),
        ("{gpu: L4-24GB, nodes: 1, network: rdma-500g}", f"{{source: {LLAMA_8B}, context: 4096}}", "rdma"),
        (
            H100,
            f"{{source: {LLAMA_70B}, context: 8192, parallelism: {{tensor: 6}}}}",
            "64 attention heads are not divisible",
        ),
        ("{gpu: L4-24GB, nodes: 1}", f"{{source: {LLAMA_8B}, context: 200000}}", "is 131072 tokens"),
        ("{gpu: L4-24GB, nodes: 1}", "{source: BAAI/bge-m3}", "does not support the task `chat`"),
        ("{gpu: L4-24GB, nodes: 1}", f"{{source: {LLAMA_405B}}}", "fits in no pool"),
        (H100, f"{{source: {LLAMA_405B}, parallelism: {{tensor: 8, pipeline: 8}}}}", "no pool has the hosts"),
        (H100, f"{{source: {LLAMA_70B}, context: 8192, parallelism: {{tensor: 16}}}}", "no pool has the hosts"),
    ],
)
def test_unplannable_fleet_is_refused_with_a_line(pool: str, model: str, says: str) -> None:
    problem = refused(pool, model)
    assert says in f"{problem.message} {problem.fix}"
    assert problem.file == "fleet.yaml"
    assert problem.line


def test_tenant_over_its_gpu_limit_is_refused() -> None:
    more = "services: {model: {tenant: team}}\ntenants: {team: {gpus: 2}}"
    problem = refused(H100, f"{{source: {LLAMA_70B}, context: 32768}}", more)
    assert "use 4 GPUs (model 4), and its limit is 2" in problem.message
    assert problem.fix.value == 4


MIXED = (
    "{network: ethernet-1g, hosts: [{gpu: RTX-A5000-24GB, name: big}, {gpu: RTX-A4000-16GB, name: s1},"
    " {gpu: RTX-A4000-16GB, name: s2}]}"
)


def test_another_host_of_the_same_kind_is_used_when_one_is_taken() -> None:
    found = plan(
        f"""
        fleet: three
        pools: {{lab: {MIXED}}}
        models:
          small: {{source: Qwen/Qwen3-4B, context: 4096, pool: lab}}
          large: {{source: Qwen/Qwen3-32B-AWQ, context: 16384}}
        """
    ).models
    assert found["large"].pipeline_parallel_size == 2
    assert not set(found["large"].hosts) & set(found["small"].hosts)


def test_replicas_on_different_hosts_are_limited_by_the_hosts() -> None:
    pool = "{network: ethernet-1g, hosts: [{gpu: RTX-3090-24GB}, {gpu: RTX-3090-24GB}, {gpu: RTX-4090-24GB}]}"
    model = one(pool, "{source: Qwen/Qwen3-8B, context: 4096, replicas: 2}")
    assert (model.replicas, model.gpus) == (2, 2)


def test_pinned_small_tp_allows_stages_within_a_host() -> None:
    pool = "{gpu: A100-SXM-40GB, nodes: 1, gpusPerNode: 8}"
    model = one(pool, f"{{source: {LLAMA_70B}, context: 32768, parallelism: {{tensor: 4}}}}")
    assert (model.tensor_parallel_size, model.pipeline_parallel_size, model.nodes_per_replica) == (4, 2, 1)


def test_stages_are_even_over_hosts_so_that_no_tp_group_crosses_them() -> None:
    pool = "{gpu: A100-SXM-80GB, nodes: 4, gpusPerNode: 8, network: rdma-400g, rdmaResource: rdma/hca}"
    model = one(pool, f"{{source: {LLAMA_70B}, context: 32768, parallelism: {{tensor: 4, pipeline: 3}}}}")
    assert (model.nodes_per_replica, model.gpus) == (3, 12)


def test_pinned_layers_set_the_number_of_stages() -> None:
    model = one(LAB, "{source: Qwen/Qwen3-32B-AWQ, context: 4096, parallelism: {layers: [36, 28]}}")
    assert model.layer_partition == (36, 28)
    assert [stage.layers for stage in model.stages] == [36, 28]


def test_layers_that_do_not_add_up_are_refused_with_a_fix() -> None:
    problem = refused(LAB, "{source: Qwen/Qwen3-32B-AWQ, context: 4096, parallelism: {layers: [30, 30]}}")
    assert "are 60 layers, and Qwen/Qwen3-32B-AWQ has 64" in problem.message
    assert problem.fix.value == [32, 32]


def test_pinned_replicas_below_the_load_get_a_warning_and_a_price() -> None:
    pool = "{gpu: RTX-4090-24GB, nodes: 2, network: internet}"
    few = one(pool, f"{{source: Qwen/Qwen3-8B, context: 8192, replicas: 1, {BUSY % (100, 0)}}}")
    assert any("requests will queue" in warning for warning in few.warnings)
    fair = one(pool, f"{{source: Qwen/Qwen3-8B, context: 8192, replicas: 1, {BUSY % (1, 0)}}}")
    assert not any("requests will queue" in warning for warning in fair.warnings)
    carried = few.estimate.tokens_per_second
    assert carried is not None
    assert few.price_per_million_output_tokens == pytest.approx(0.6 / (carried * 3600) * 1e6, rel=0.01)


def test_unused_part_of_a_gpu_gets_a_warning() -> None:
    found = plan(
        """
        fleet: alone
        pools: {gpu: {gpu: L4-24GB, nodes: 1, price: 2 USD/h}}
        models: {embed: {source: BAAI/bge-m3, task: embed, gpuFraction: 0.4}}
        """
    )
    (model,) = found.models.values()
    assert (model.price_per_hour, model.blocked_price_per_hour) == (2.0, 1.2)
    assert found.price_per_hour == 2.0
    (reason,) = (reason for reason in model.reasons if reason.decision == "price_per_hour")
    assert reason.because.endswith("0.6 more are blocked: only models of service `embed` can use the rest")
    warning, _ = found.warnings
    assert "pool `gpu`: 0.6 GPU allocated to service" in warning
    assert "is unused (1.20 USD/h, in the prices of its models)" in warning


def test_models_of_a_service_divide_the_price_of_the_rest_of_their_gpu() -> None:
    found = plan(
        """
        fleet: shared
        pools: {gpu: {gpu: L4-24GB, nodes: 1, price: 2 USD/h}}
        models:
          embed: {source: BAAI/bge-m3, task: embed, gpuFraction: 0.2, service: search}
          rerank: {source: BAAI/bge-reranker-v2-m3, task: rerank, gpuFraction: 0.3, service: search}
        """
    )
    assert [model.price_per_hour for model in found.models.values()] == [0.8, 1.2]


def test_fraction_on_a_gpu_of_another_service_is_refused_with_a_fix() -> None:
    with pytest.raises(FleetError) as caught:
        plan(
            """
            fleet: apart
            pools: {gpu: {gpu: L4-24GB, nodes: 1}}
            models:
              embed: {source: BAAI/bge-m3, task: embed, gpuFraction: 0.4}
              rerank: {source: BAAI/bge-reranker-v2-m3, task: rerank, gpuFraction: 0.4}
            """
        )
    assert "service: rerank" in str(caught.value)


def test_gpu_limit_of_a_tenant_counts_whole_gpus() -> None:
    more = "services: {model: {tenant: team}}\ntenants: {team: {gpus: 0.5}}"
    problem = refused("{gpu: L4-24GB, nodes: 1}", "{source: BAAI/bge-m3, task: embed, gpuFraction: 0.4}", more)
    assert "use 1 GPU " in problem.message


def test_traffic_longer_than_the_context_of_the_model_is_refused() -> None:
    traffic = "traffic: {requestsPerSecond: 1, inputTokens: 500000, outputTokens: 10}"
    problem = refused("{gpu: L4-24GB, nodes: 1}", f"{{source: Qwen/Qwen2.5-7B-Instruct, {traffic}}}")
    assert "is 32768 tokens" in problem.message


def test_gpu_of_unknown_memory_gets_no_invented_figures() -> None:
    model = one("{gpu: Radeon-680M, nodes: 1}", f"{{source: Qwen/Qwen3-0.6B, pool: pool, {BUSY % (0.3, 0)}}}")
    bound = next(reason.numbers["bound_by"] for reason in model.reasons if reason.decision == "replicas")
    assert bound == "max_num_seqs"
    assert any("was not checked" in gap for gap in model.unknown)


def test_fixes_use_keys_of_the_fleet_file() -> None:
    problem = refused("{gpu: L4-24GB, nodes: 2}", f"{{source: {LLAMA_405B}, context: 4096}}")
    text = str(problem)
    assert "max_model_len" not in text
    assert "tensor_parallel_size" not in text
    shorter = refused("{gpu: RTX-A5000-24GB, nodes: 1}", "{source: Qwen/Qwen3-32B-AWQ, context: 16384}")
    assert shorter.fix.path == "models.model.context"
    assert any(fix.path.startswith("pools.") for fix in shorter.alternatives)


def test_fix_adds_as_many_nodes_as_the_replicas_need() -> None:
    model = "{source: Qwen/Qwen3-8B, context: 4096, replicas: 20}"
    problem = refused("{gpu: RTX-4090-24GB, nodes: 1, gpusPerNode: 8}", model)
    assert (problem.fix.path, problem.fix.value) == ("pools.pool.nodes", 3)


def test_smaller_fraction_without_cuda_graphs_is_not_chosen() -> None:
    found = plan(
        f"""
        fleet: share
        pools: {{gpu: {{gpu: H200-SXM-141GB, nodes: 1}}}}
        models:
          chat: {{source: openai/gpt-oss-20b, context: 8192, service: ai, slo: {{tpot: 20ms}}, {BUSY % (1, 0)}}}
          embed: {{source: BAAI/bge-m3, task: embed, service: ai}}
        """
    ).models["chat"]
    assert found.gpu_fraction < 1
    assert "enforce_eager" not in found.engine


def test_pool_of_thousands_of_nodes_is_planned_quickly() -> None:
    """Looking at every host for every replica would run into the time-out of the tests."""
    pool = "{gpu: L4-24GB, nodes: 4000, gpusPerNode: 8, network: internet}"
    model = one(pool, f"{{source: Qwen/Qwen3-8B, context: 4096, {BUSY % (5000, 0)}}}")
    assert model.replicas > 500


def test_many_different_hosts_are_combined_by_kind() -> None:
    hosts = ", ".join(f"{{gpu: {gpu}}}" for gpu in ("RTX-3090-24GB", "RTX-4090-24GB", "RTX-A4000-16GB") * 8)
    model = one(f"{{hosts: [{hosts}], network: ethernet-10g}}", f"{{source: {LLAMA_70B}, context: 4096}}")
    assert 6 < model.pipeline_parallel_size <= 8


def test_gated_model_without_a_token_gets_a_warning() -> None:
    pool = "{gpu: L4-24GB, nodes: 1}"
    text = f"fleet: one\npools: {{pool: {pool}}}\nmodels: {{model: {{source: {LLAMA_8B}, context: 4096}}}}\n"
    assert any("is gated" in warning for warning in plan(text).warnings)
    token = "clusters: {main: {weights: {hubToken: {name: hf, key: token}}}}\n"
    assert not any("is gated" in warning for warning in plan(text + token).warnings)


def test_fixes_of_a_model_that_does_not_fit_are_yaml() -> None:
    for pool, model in (
        ("{gpu: L4-24GB, nodes: 1}", f"{{source: {LLAMA_70B}, context: 8192}}"),
        (H100, f"{{source: {LLAMA_70B}, context: 8192, parallelism: {{tensor: 6}}}}"),
        ("{gpu: L4-24GB, nodes: 1}", "{source: Qwen/Qwen3-14B, context: 8192}"),
        ("{gpu: H100-SXM-80GB, nodes: 1}", f"{{source: {LLAMA_405B}, context: 8192}}"),
    ):
        problem = refused(pool, model)
        for fix in (problem.fix, *problem.alternatives):
            (key,) = yaml.safe_load(str(fix))
            assert fix.path in {f"models.model.{key}", f"pools.{key}"}, fix
            assert fix.value == yaml.safe_load(str(fix))[key]
