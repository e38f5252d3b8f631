"""Prompts and answers on different replicas: the numbers of both, the transfer of the KV cache, and what is refused."""

import pytest

from rayhelm.deploy.compose.gateway import build_gateways
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.serve_models import list_engine_configs, list_llm_configs
from rayhelm.errors import Fix
from rayhelm.planner.alternatives import list_alternatives
from rayhelm.planner.deployment_names import name_llm_deployment
from rayhelm.planner.placement.kv_transfer import load_transfer_rules
from rayhelm.planner.plan import ModelPlan
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load, one, refused

LLAMA = "meta-llama/Llama-3.3-70B-Instruct"
POOL = "{gpu: H200-SXM-141GB, nodes: 3, gpusPerNode: 8, network: rdma-400g, rdmaResource: rdma/hca}"
LOAD = "traffic: {requestsPerSecond: 8, inputTokens: 3000, outputTokens: 400}"
ADAPTER = ", adapters: {legal: {source: acme/legal, revision: '" + 40 * "1" + "'}}"
SPLIT = "parallelism: {tensor: 2, prefillDecode: true}"


def split(parallelism: str = SPLIT, more: str = LOAD, pool: str = POOL, source: str = LLAMA) -> ModelPlan:
    return one(pool, f"{{source: {source}, context: 16384, {parallelism}, slo: {{tpot: 40ms}}, {more}}}")


def test_numbers_of_both_kinds_follow_the_gpu_seconds_of_a_request() -> None:
    model = split()
    roles = model.prefill_decode
    assert roles is not None
    rate, used = 8.0, 0.75
    busy = rate * roles.prefill.gpu_s_per_request / model.gpus_per_replica
    assert roles.prefill.replicas - 1 < busy / used <= roles.prefill.replicas
    busy = rate * roles.decode.gpu_s_per_request / model.gpus_per_replica
    assert busy < roles.decode.replicas
    assert model.replicas == roles.prefill.replicas + roles.decode.replicas
    assert model.gpus == model.replicas * model.gpus_per_replica
    assert model.serving_replicas == roles.decode.replicas
    assert (model.estimate.concurrency or 0) * roles.decode.replicas > rate * 400 * 0.8 * (model.estimate.tpot_s or 0)


def test_longer_prompts_move_replicas_to_prefill_and_longer_answers_to_decode() -> None:
    short = split(more="traffic: {requestsPerSecond: 4, inputTokens: 1000, outputTokens: 1000}").prefill_decode
    long = split(more="traffic: {requestsPerSecond: 4, inputTokens: 6000, outputTokens: 100}").prefill_decode
    assert short
    assert long
    assert short.prefill.replicas < short.decode.replicas
    assert long.prefill.replicas > long.decode.replicas


def test_transfer_is_the_cache_of_the_prompt_over_the_network() -> None:
    roles = split().prefill_decode
    assert roles is not None
    assert roles.kv_cache_mb == pytest.approx(3000 * 80 * 2 * 8 * 128 * 2 / 1e6, abs=0.1)
    assert roles.transfer_s == pytest.approx(roles.kv_cache_mb / 1e3 / 49.5, rel=1e-3)
    assert roles.transfer_s < load_transfer_rules().most_share * roles.prefill_s


def test_reasons_name_the_transfer_and_the_gpu_seconds() -> None:
    reasons = {reason.decision: reason for reason in split().reasons}
    assert "moves over rdma-400g" in reasons["prefill_decode"].because
    assert reasons["prefill_decode"].numbers.keys() == {"kv_cache_mb", "transfer_ms", "prefill_ms"}
    assert "GPU-seconds for its prompt" in reasons["prefill_replicas, decode_replicas"].because
    assert "replicas" not in reasons


def test_pinned_numbers_are_kept_and_too_few_of_a_kind_are_reported() -> None:
    model = split("parallelism: {tensor: 2, prefill: 1, decode: 6}")
    roles = model.prefill_decode
    assert roles is not None
    assert (roles.prefill.replicas, roles.decode.replicas, model.min_replicas, model.max_replicas) == (1, 6, 7, 7)
    assert any("1 pinned prefill replicas, and the planned load needs" in warning for warning in model.warnings)
    assert not any("pinned decode replicas" in warning for warning in model.warnings)


def test_one_pinned_replica_of_each_kind_reports_what_the_load_needs() -> None:
    model = split("parallelism: {tensor: 2, prefill: 1, decode: 1}")
    assert any("1 pinned prefill replicas, and the planned load needs" in warning for warning in model.warnings)
    assert model.estimate.ttft_s is None
    assert "Infinity" not in model.model_dump_json()
    assert (model.estimate.concurrency or 0) <= model.max_num_seqs


def test_planned_bound_of_a_gateway_counts_decode_replicas_alone() -> None:
    clusters = {
        name: f"{{apiServer: {{cidrs: [10.0.0.1/32]}}, gateway: {{host: {name}.example.com, allowedClients: [web],"
        f" ingress: {{tlsSecret: tls}}{more}}}}}"
        for name, more in (
            ("eu", ", remotes: {us: {certificateAuthority: {configMap: ca}, cidrs: [203.0.113.10/32]}}"),
            ("us", ""),
        )
    }
    here = f"source: {LLAMA}, context: 16384, slo: {{tpot: 40ms}}, {LOAD}"
    text = f"""
fleet: two
clusters: {{eu: {clusters["eu"]}, us: {clusters["us"]}}}
pools: {{eu: {POOL[:-1]}, cluster: eu}}, us: {POOL[:-1]}, cluster: us}}}}
tenants: {{a: {{models: [chat]}}}}
models:
  chat: {{{here}, pool: eu, {SPLIT}, spillAbove: planned}}
  chat-us: {{{here}, pool: us, servedAs: {{model: chat}}}}
"""
    loaded = load(text)
    planned = plan_fleet(loaded)
    chat = planned.models["chat"]
    assert chat.prefill_decode
    assert chat.max_serving_replicas == chat.prefill_decode.decode.max_replicas < chat.max_replicas
    values = build_gateways(planned, build_ray_service_values(planned))["eu"]
    assert values.models["chat"].spill_above == -(-chat.target_ongoing_requests * chat.max_serving_replicas // 2)


def test_first_token_meets_its_objective_with_more_prefill_replicas() -> None:
    tight = one(POOL, f"{{source: {LLAMA}, context: 16384, {SPLIT}, slo: {{ttft: 2s}}, {LOAD}}}")
    relaxed = one(POOL, f"{{source: {LLAMA}, context: 16384, {SPLIT}, {LOAD}}}")
    assert tight.prefill_decode
    assert relaxed.prefill_decode
    assert tight.prefill_decode.prefill.replicas > relaxed.prefill_decode.prefill.replicas
    assert (tight.estimate.ttft_interval_s or (0.0, 9.0))[1] <= 2


def test_one_replica_of_each_kind_is_planned_without_traffic() -> None:
    roles = split(more="task: chat").prefill_decode
    assert roles is not None
    assert (roles.prefill.replicas, roles.decode.replicas) == (1, 1)


def test_spare_replicas_of_both_kinds_are_planned_for_an_availability() -> None:
    slo = "slo: {capacityAvailability: 0.9999}"
    model = one(POOL, f"{{source: {LLAMA}, context: 16384, {SPLIT}, {slo}, {LOAD}}}")
    usual = one(POOL, f"{{source: {LLAMA}, context: 16384, {SPLIT}, {LOAD}}}")
    assert model.prefill_decode
    assert usual.prefill_decode
    assert model.prefill_decode.prefill.replicas > usual.prefill_decode.prefill.replicas
    assert model.prefill_decode.decode.replicas > usual.prefill_decode.decode.replicas
    assert model.min_replicas >= 4


def test_prefixes_are_routed_over_prefill_replicas() -> None:
    more = "traffic: {requestsPerSecond: 8, inputTokens: 3000, outputTokens: 400, sharedPrefix: 0.4}"
    model = split(more=more)
    assert model.routing == "prefix-affinity"
    assert any("over the prefill replicas" in reason.because for reason in model.reasons)
    assert split("parallelism: {tensor: 2, prefill: 1, decode: 6}", more).routing == "least-loaded"


def test_cached_prefixes_are_divided_over_prefill_replicas() -> None:
    more = "traffic: {requestsPerSecond: 8, inputTokens: 3000, outputTokens: 400, sharedPrefix: 0.4, prefixes: 40}"
    model = split(more=more)
    roles = model.prefill_decode
    assert roles
    assert roles.prefill.replicas > 1
    (reason,) = [each for each in model.reasons if each.decision == "prefix_hits"]
    assert f"divides them over {roles.prefill.replicas} prefill replicas" in reason.because


def test_values_have_both_deployments_and_pods_for_all_replicas() -> None:
    loaded = load(f"""
fleet: big
clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}}}}}
pools: {{gpu: {POOL}}}
models: {{chat: {{source: {LLAMA}, context: 16384, {SPLIT}, {LOAD}}}}}
""")
    planned = plan_fleet(loaded)
    model = planned.models["chat"]
    (values,) = build_ray_service_values(planned).values()
    served = values.serve.applications["chat"].models["chat"]
    assert served.prefill
    assert model.prefill_decode
    assert served.prefill.autoscaling.max_replicas == model.prefill_decode.prefill.max_replicas
    assert served.autoscaling.max_replicas == model.prefill_decode.decode.max_replicas
    assert (served.autoscaling.min_replicas, served.prefill.autoscaling.min_replicas) == (1, 1)
    (group,) = values.worker_groups.values()
    assert (group.gpu.count, group.min_replicas, group.max_replicas) == (2, 2, model.replicas)
    assert group.rdma.resource == "rdma/hca"
    assert name_llm_deployment(model) == "Decode:chat"


def test_alternatives_name_prompts_and_answers_on_different_replicas() -> None:
    text = f"""
fleet: one
pools: {{gpu: {POOL}}}
models: {{chat: {{source: {LLAMA}, context: 16384, slo: {{ttft: 2s, tpot: 40ms}},
  traffic: {{requestsPerSecond: 5, inputTokens: 3000, outputTokens: 300}}, parallelism: {{tensor: 2}}}}}}
"""
    loaded = load(text)
    found = list_alternatives(plan_fleet(loaded))["chat"]
    (role,) = [each for each in found if each.kind == "prefill/decode"]
    assert "prefillDecode: true" in role.what
    assert "compared with no measurement" in role.note
    assert (role.saving_per_hour or 0) > 0


@pytest.mark.parametrize(
    ("pool", "model"), [(POOL.replace(", rdmaResource: rdma/hca", ""), ""), (POOL, ", aliases: [gpt-4o-mini]")]
)
def test_alternatives_do_not_name_a_split_that_is_refused(pool: str, model: str) -> None:
    text = f"""
fleet: one
clusters: {{main: {{image: {{repository: registry.example/ray-vllm, tag: 2.60.0-ours, includesRayhelm: true}}}}}}
pools: {{gpu: {pool}}}
models: {{chat: {{source: {LLAMA}, context: 16384, slo: {{ttft: 2s, tpot: 40ms}},
  traffic: {{requestsPerSecond: 5, inputTokens: 3000, outputTokens: 300}}, parallelism: {{tensor: 2}}{model}}}}}
"""
    loaded = load(text)
    found = list_alternatives(plan_fleet(loaded))["chat"]
    assert "prefill/decode" not in [each.kind for each in found]


@pytest.mark.parametrize(
    ("pool", "source", "says"),
    [
        (POOL.replace("rdma-400g", "rdma-100g"), LLAMA, "0.23 times the 346 ms that the GPUs compute the prompt"),
        (POOL.replace("rdma-400g, rdmaResource: rdma/hca", "ethernet-100g"), LLAMA, "so RDMA is needed"),
        (POOL, "openai/gpt-oss-120b", "need full attention in all layers"),
    ],
)
def test_split_is_refused_where_the_cache_does_not_move_in_time(pool: str, source: str, says: str) -> None:
    problem = refused(
        pool, f"{{source: {source}, context: 8192, parallelism: {{tensor: 2, prefillDecode: true}}, {LOAD}}}"
    )
    assert says in problem.message
    assert problem.line


@pytest.mark.parametrize(
    ("parallelism", "more", "says"),
    [
        ("{prefill: 2}", "", "`prefill` needs `decode`"),
        ("{decode: 2}", "", "`decode` needs `prefill`"),
        ("{prefill: 1, decode: 2, prefillDecode: false}", "", "`prefillDecode` is false"),
        ("{prefillDecode: true}", ", replicas: 3", "does not say how many replicas compute prompts"),
        ("{prefillDecode: true}", ", scaling: engine-queue", "`engine-queue` was not tested"),
        ("{prefillDecode: true}", ", task: embed", "Ray Serve LLM separates them for `chat`"),
        ("{prefillDecode: true, data: 2}", "", "data parallel ranks were not tested with prefill"),
        ("{prefillDecode: true}", ", gpuFraction: 0.5", "a part of one was not tested"),
        ("{prefillDecode: true}", ", engine: {kv_transfer_config: {kv_connector: X}}", "sets kv_transfer_config"),
        ("{prefillDecode: true}", ADAPTER, "adapters were not tested with prefill"),
        ("{prefillDecode: true, pipeline: 2}", "", "were not tested with pipeline stages"),
    ],
)
def test_keys_that_contradict_the_split_are_refused(parallelism: str, more: str, says: str) -> None:
    source = "Qwen/Qwen3-Embedding-8B" if "embed" in more else "Qwen/Qwen3-32B"
    assert says in refused(POOL, f"{{source: {source}, context: 8192, parallelism: {parallelism}{more}}}").message


def test_pool_whose_pods_get_no_rdma_device_is_refused() -> None:
    pool = POOL.replace(", rdmaResource: rdma/hca", "")
    problem = refused(pool, f"{{source: {LLAMA}, context: 16384, {SPLIT}, {LOAD}}}")
    assert "has no `rdmaResource`" in problem.message
    assert "between the replicas of `model`" in problem.message
    assert problem.fix_text.startswith("rdmaResource: ")
    assert not problem.alternatives  # a network without RDMA is refused too


def test_fix_removes_pipeline_stages_before_prefill_and_decode() -> None:
    model = "{source: Qwen/Qwen3-32B, context: 8192, parallelism: {tensor: 2, pipeline: 2, prefillDecode: true}}"
    problem = refused(POOL, model)
    assert isinstance(problem.fix, Fix)
    assert problem.fix.value == {"tensor": 2, "prefillDecode": True}
    assert [fix.value for fix in problem.alternatives] == [{"tensor": 2}]


def test_readers_of_a_serve_config_find_the_deployment_that_answers() -> None:
    application = {"args": {"prefill_config": {"a": 1}, "decode_config": {"b": 2}}}
    assert list_llm_configs(application) == [{"b": 2}]
    assert list_engine_configs(application) == [{"a": 1}, {"b": 2}]
