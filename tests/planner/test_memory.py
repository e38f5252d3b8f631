"""The terms of GPU memory, each against figures computed by hand."""

import pytest

from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.facts.engines import find_engine
from rayhelm.facts.tensors import count_weights
from rayhelm.planner.memory.expert_padding import MARLIN, TRITON
from rayhelm.planner.memory.gpu_memory import (
    GIB,
    count_rotary_table,
    count_stage_weights,
    estimate_activation,
    estimate_cuda_graphs,
    estimate_non_torch,
)
from rayhelm.planner.memory.kv_cache import KvCache, lay_out_kv_cache
from rayhelm.planner.memory.parallelism import list_tensor_parallel_sizes, split_layers
from rayhelm.planner.shape import ReplicaShape

ENGINE, _ = find_engine("0.29.0")
ONE = ReplicaShape()
LLAMA_8B = load_catalog().model("meta-llama/Llama-3.1-8B-Instruct")
LLAMA_3B = load_catalog().model("meta-llama/Llama-3.2-3B-Instruct")
QWEN_AWQ = load_catalog().model("Qwen/Qwen3-32B-AWQ")
DEEPSEEK = load_catalog().model("deepseek-ai/DeepSeek-V3")
GEMMA = load_catalog().model("google/gemma-3-27b-it")
GPT_OSS = load_catalog().model("openai/gpt-oss-120b")
WHISPER = load_catalog().model("openai/whisper-large-v3")
BGE = load_catalog().model("BAAI/bge-large-en-v1.5")


def cache_of(model, tp=1, pp=1, dtype="auto", version="0.29.0") -> KvCache:
    found = lay_out_kv_cache(model, tp, split_layers(model.layers, pp), dtype, find_engine(version)[0])
    assert found is not None
    return found


def test_single_gpu_has_all_weight_bytes() -> None:
    assert count_stage_weights(LLAMA_8B, ONE, ENGINE) == (count_weights(LLAMA_8B).bytes,)


def test_each_gpu_holds_the_rotary_positions_of_the_longest_context() -> None:
    assert count_rotary_table(LLAMA_8B) == 131_072 * 128 * 2
    assert count_rotary_table(DEEPSEEK) == DEEPSEEK.max_context * 64 * 2  # of the rotary part of MLA only
    assert count_rotary_table(BGE) == 0


def test_stages_have_each_layer_once() -> None:
    untied = count_stage_weights(QWEN_AWQ, ReplicaShape(pp=2), ENGINE)
    assert sum(untied) == pytest.approx(count_weights(QWEN_AWQ).bytes)


def test_tied_embedding_is_on_the_last_stage_again() -> None:
    assert LLAMA_3B.tied_embeddings
    embedding = LLAMA_3B.vocab * LLAMA_3B.hidden * 2
    assert sum(count_stage_weights(LLAMA_3B, ReplicaShape(pp=2), ENGINE)) == pytest.approx(
        count_weights(LLAMA_3B).bytes + embedding
    )


def test_tensor_parallelism_pads_the_vocabulary_and_replicates_norms() -> None:
    odd = LLAMA_8B.model_copy(update={"vocab": LLAMA_8B.vocab - 1})
    assert count_stage_weights(odd, ReplicaShape(4), ENGINE) == pytest.approx(
        count_stage_weights(LLAMA_8B, ReplicaShape(4), ENGINE)
    )
    norms = (2 * 32 + 1) * 4096 * 2
    expected = (count_weights(LLAMA_8B).bytes - norms) / 4 + norms
    assert count_stage_weights(LLAMA_8B, ReplicaShape(4), ENGINE) == pytest.approx((expected,))


def test_kv_weights_are_replicated_beyond_the_number_of_kv_heads() -> None:
    heads = LLAMA_8B.attention
    key_and_value = 32 * 2 * 4096 * heads.kv_heads * heads.head_dim * 2
    at_8, at_16 = (
        count_stage_weights(LLAMA_8B, ReplicaShape(8), ENGINE)[0],
        count_stage_weights(LLAMA_8B, ReplicaShape(16), ENGINE)[0],
    )
    replicated = key_and_value / 8 + (2 * 32 + 1) * 4096 * 2
    assert at_16 - replicated == pytest.approx((at_8 - replicated) / 2)


@pytest.mark.parametrize("model", load_catalog().models(), ids=lambda model: model.id)
def test_larger_tensor_parallel_size_never_adds_weights_per_gpu(model) -> None:
    sizes = list_tensor_parallel_sizes(model, ENGINE)
    held = [count_stage_weights(model, ReplicaShape(tp), ENGINE)[0] for tp in sizes]
    assert held == sorted(held, reverse=True)


def test_mxfp4_experts_are_padded_like_in_the_kernels() -> None:
    for padding, measured in ((TRITON, 64.38), (MARLIN, 65.97)):
        counted = count_stage_weights(GPT_OSS, ONE, ENGINE, padding)[0] / GIB
        assert counted == pytest.approx(measured, abs=0.1)
    assert count_weights(GPT_OSS).bytes / GIB == pytest.approx(60.8, abs=0.1)


@pytest.mark.parametrize(
    ("model", "tp", "dtype", "per_token"),
    [
        (LLAMA_8B, 1, "auto", 131_072),
        (LLAMA_8B, 8, "auto", 16_384),
        (LLAMA_8B, 16, "auto", 16_384),  # one KV head is the least that a rank holds
        (LLAMA_8B, 1, "fp8", 65_536),
        (QWEN_AWQ, 1, "auto", 262_144),
        (DEEPSEEK, 1, "auto", 70_272),  # the latent of 576 is whole on every rank
        (DEEPSEEK, 8, "auto", 70_272),
    ],
)
def test_bytes_per_token(model, tp, dtype, per_token) -> None:
    assert cache_of(model, tp, dtype=dtype).token_bytes(0) == per_token


def test_windowed_layers_cache_the_window_and_tokens_in_flight() -> None:
    cache = cache_of(GEMMA)
    kinds = [group.kind for group in cache.groups]
    assert (kinds.count("full"), kinds.count("window")) == (1, 6)  # 10 and 52 layers, in groups of 10 at most
    assert max(group.layers[0] for group in cache.groups) == 10
    windowed = -(-(1024 - 1 + 4096) // 16) + 1
    assert cache.request_blocks(131_072, in_flight=4096, batch=2048) == 131_072 // 16 + 6 * windowed


def test_cache_groups_are_spread_over_all_stages() -> None:
    cache = cache_of(GEMMA, pp=2)
    assert all(abs(first - last) <= 1 for first, last in (group.layers for group in cache.groups))
    assert sum(sum(group.layers) for group in cache.groups) == GEMMA.layers


def test_windowed_layers_cache_all_tokens_without_a_hybrid_cache() -> None:
    cache = cache_of(GEMMA, version="0.8.2")
    assert [group.layers for group in cache.groups] == [(62,)]


def test_encoder_decoder_caches_the_encoder_output() -> None:
    cache = cache_of(WHISPER)
    assert [group.kind for group in cache.groups] == ["full", "cross"]
    assert cache.request_blocks(448, in_flight=4096, batch=2048) == 28 + 128


def test_encoders_have_no_cache() -> None:
    assert lay_out_kv_cache(BGE, 1, (BGE.layers,), "auto", ENGINE) is None


def test_unknown_cache_dtype_is_refused_with_the_known_ones() -> None:
    with pytest.raises(FleetError, match="fp8_e5m2"):
        cache_of(LLAMA_8B, dtype="int3")


def test_sampler_memory_grows_on_the_last_stage_only() -> None:
    old, _ = find_engine("0.11.0")
    logits = 1024 * LLAMA_8B.vocab
    last = estimate_activation(LLAMA_8B, ONE, seqs=1024, tokens=8192, last_stage=True, engine=old)
    assert last.bytes == pytest.approx(38.3 * logits + (8192 + 1024) * 2 * 4096)
    first = estimate_activation(LLAMA_8B, ONE, seqs=1024, tokens=8192, last_stage=False, engine=old)
    assert first.bytes == pytest.approx(8192 * 2 * (3 * 14_336 + 3 * 4096))


def test_sampler_rows_are_limited_by_the_batch() -> None:
    few, many = (
        estimate_activation(LLAMA_8B, ONE, seqs=seqs, tokens=64, last_stage=True, engine=ENGINE).bytes
        for seqs in (64, 1024)
    )
    assert few == many


def test_activations_are_60_percent_smaller_with_the_new_sampler() -> None:
    before, after = (
        estimate_activation(
            LLAMA_8B, ONE, seqs=1024, tokens=8192, last_stage=True, engine=find_engine(version)[0]
        ).bytes
        for version in ("0.16.0", "0.17.0")
    )
    assert after / before == pytest.approx(0.4, abs=0.01)


def test_models_without_a_vocabulary_head_have_no_sampler_memory() -> None:
    few, many = (
        estimate_activation(BGE, ONE, seqs=seqs, tokens=2048, last_stage=True, engine=ENGINE).bytes
        for seqs in (1, 1024)
    )
    assert few == many


def test_cuda_graphs_count_since_0_21_and_not_with_eager() -> None:
    assert estimate_cuda_graphs(eager=False, engine=find_engine("0.20.0")[0]).bytes == 0
    assert estimate_cuda_graphs(eager=False, engine=find_engine("0.21.0")[0]).bytes > 0
    assert estimate_cuda_graphs(eager=True, engine=ENGINE).bytes == 0


def test_eager_has_no_memory_of_torch_compile() -> None:
    assert (
        estimate_non_torch(ONE, eager=True, is_unified=False, engine=ENGINE).bytes
        < estimate_non_torch(ONE, eager=False, is_unified=False, engine=ENGINE).bytes
    )


@pytest.mark.parametrize(
    ("asked", "used", "said"),
    [("0.29.0", "0.29.0", ""), ("0.18.0", "0.17.0", "nearest lower"), ("0.2.7", "0.6.5", "oldest known")],
)
def test_constants_of_another_version_come_with_a_note(asked, used, said) -> None:
    constants, note = find_engine(asked)
    assert constants.version == used
    assert said in note
    assert bool(note) == (asked != used)


def test_text_without_a_version_is_refused() -> None:
    with pytest.raises(FleetError, match="not a version of vLLM"):
        find_engine("latest")


@pytest.mark.parametrize(
    ("gpu", "seqs", "tokens"),
    [
        ("RTX-4090-24GB", 256, 2048),
        ("H100-SXM-80GB", 1024, 8192),
        ("A100-SXM-80GB", 256, 2048),
        ("MI300X-192GB", 1024, 16384),
    ],
)
def test_engine_defaults_depend_on_the_gpu_like_in_vllm(gpu, seqs, tokens) -> None:
    default = ENGINE.defaults_for(load_catalog().gpu(gpu))
    assert (default.max_num_seqs, default.max_num_batched_tokens) == (seqs, tokens)
