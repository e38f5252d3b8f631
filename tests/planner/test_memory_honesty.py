"""No fit is stated where the memory is not known: versions older than the constants, names that several GPUs have."""

import json
from pathlib import Path
from typing import Any

import pytest

from rayhelm.facts import load_catalog
from rayhelm.facts.engines import find_engine, is_older_than_measured, list_engines
from rayhelm.facts.gpu import LEAST_USABLE
from rayhelm.facts.huggingface import read_config
from rayhelm.facts.model import Checkpoint
from rayhelm.planner.memory.fit import Fit
from shared.command import run
from shared.fits import fit
from shared.fleets import one, plan

GPUS = load_catalog()


def fit_old(version: str, tp: int = 8, model: str = "RedHatAI/Meta-Llama-3.1-405B-Instruct-FP8-dynamic") -> Fit:
    return fit(GPUS.model(model), [GPUS.gpu("H100-SXM-80GB")], tp, max_model_len=8192, vllm_version=version)


@pytest.mark.parametrize("version", ["0.2.7", "0.4.2", "0.5.3", "0.6.4"])
def test_version_before_the_oldest_constants_is_never_called_a_fit(version: str) -> None:
    answer = fit_old(version)
    assert not answer.fits
    assert not answer.is_measured_version
    assert answer.reason.startswith(f"not safe to call: vLLM {version} is older than 0.6.5")
    assert answer.kv_cache_tokens is None
    assert answer.fixes


def test_range_for_an_old_version_covers_all_known_versions() -> None:
    least, most = fit_old("0.5.3").kv_available_range_gib or (0.0, 0.0)
    known = [fit_old(engine.version).kv_available_gib_per_gpu or 0.0 for engine in list_engines()]
    assert least < min(known) <= max(known) < most


def test_measured_version_states_its_fit() -> None:
    assert fit_old("0.6.5").fits
    assert fit_old("0.6.5").is_measured_version
    assert fit_old("0.6.5").kv_available_range_gib is None
    assert not is_older_than_measured("0.6.5")


def test_small_model_on_an_old_version_is_not_called_a_fit_either() -> None:
    assert not fit_old("0.5.3", 1, "meta-llama/Llama-3.2-1B-Instruct").fits


def test_fit_command_says_that_an_old_version_is_not_safe_to_call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run(capsys, monkeypatch, "fit", "--model", "Qwen/Qwen3-8B", "--gpu", "H100", "--vllm-version", "0.5.3")
    assert "not safe to call" in said.out.splitlines()[0]


def test_quantization_beside_the_config_is_read(tmp_path: Any) -> None:
    keys = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 2, "vocab_size": 99, "max_position_embeddings": 99}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(keys))
    assert read_config(tmp_path / "config.json").quantization is None
    beside = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(beside))
    found = read_config(tmp_path / "config.json").quantization
    assert found is not None
    assert (found.bits, found.group_size, found.kv_bits) == (4, 16, 8)


def test_context_parallelism_spreads_the_latent_of_a_request() -> None:
    model, gpu = GPUS.model("deepseek-ai/DeepSeek-V3"), [GPUS.gpu("H200-SXM-141GB")]
    one, four = (fit(model, gpu, 8, max_model_len=65536, decode_context_parallel_size=ranks) for ranks in (1, 4))
    assert one.max_concurrency is not None
    assert four.max_concurrency == pytest.approx(4 * one.max_concurrency, rel=0.01)


@pytest.mark.parametrize(
    ("model", "tp", "ranks"),
    [("meta-llama/Llama-3.1-8B-Instruct", 8, 2), ("deepseek-ai/DeepSeek-V3", 8, 3), ("openai/gpt-oss-20b", 8, 2)],
)
def test_context_parallelism_without_copies_of_heads_is_refused(model: str, tp: int, ranks: int) -> None:
    answer = fit(GPUS.model(model), [GPUS.gpu("H200-SXM-141GB")], tp, decode_context_parallel_size=ranks)
    assert not answer.fits
    assert "decode_context_parallel_size" in answer.reason
    assert answer.fixes[0].settings == {"decode_context_parallel_size": 1}


@pytest.mark.parametrize("version", ["0.8.0", "0.11.0", "0.17.0"])
def test_unified_memory_is_not_charged_for_unstated_sequences(version: str) -> None:
    spark, h100 = GPUS.gpu("GB10"), GPUS.gpu("H200")
    assert find_engine(version)[0].defaults_for(spark).max_num_seqs == 256
    assert find_engine(version)[0].defaults_for(h100).max_num_seqs == 1024
    model = GPUS.model("openai/gpt-oss-120b")
    assert fit(model, [spark], max_num_seqs=1024, vllm_version=version).max_num_seqs == 1024


def glm_47_fp8() -> Checkpoint:
    keys = json.loads((Path(__file__).parents[1] / "facts/architecture_configs/zai-org--GLM-4.5.json").read_text())
    return read_config(keys | {"max_position_embeddings": 202752, "quantization_config": {"quant_method": "fp8"}})


def test_check_of_015_counts_the_layers_of_all_stages_as_logged() -> None:
    """vllm-project/vllm#32105: GLM-4.7-FP8 over 8 stages, 71.16 GiB needed, 28.57 GiB left, 81,392 tokens allowed."""
    answer = fit(
        glm_47_fp8(), [GPUS.gpu("A100-SXM-80GB")], pp=8, gpu_memory_utilization=0.925, max_num_seqs=128,
        max_model_len=202752, vllm_version="0.15.0",
    )  # fmt: skip
    assert not answer.fits
    assert answer.kv_available_gib_per_gpu == pytest.approx(28.57, rel=0.01)
    assert "needs 71.2 GiB of KV cache in the layers of all stages" in answer.reason
    assert answer.largest_context == pytest.approx(81_392, rel=0.01)


@pytest.mark.parametrize("version", ["0.13.0", "0.16.0", "0.29.0"])
def test_check_of_other_versions_counts_the_layers_of_one_stage(version: str) -> None:
    answer = fit(
        glm_47_fp8(), [GPUS.gpu("A100-SXM-80GB")], pp=8, gpu_memory_utilization=0.925, max_num_seqs=128,
        max_model_len=202752, vllm_version=version,
    )  # fmt: skip
    assert answer.fits


@pytest.mark.parametrize(("share", "logged", "fits"), [(0.80, 22.5, False), (0.85, 28.74, True)])
def test_unified_memory_leaves_the_cache_that_was_logged(share: float, logged: float, fits: bool) -> None:
    """eugr/spark-vllm-docker#396: MiniMax-M2.7-AWQ on two GB10, which started with 0.85 and failed with 0.80."""
    keys = json.loads(
        (Path(__file__).parents[1] / "facts/architecture_configs/MiniMaxAI--MiniMax-M2.5.json").read_text()
    )
    awq = {"quant_method": "awq", "bits": 4, "group_size": 128}
    answer = fit(
        read_config(keys | {"quantization_config": awq}), [GPUS.gpu("GB10")], tp=2, gpu_memory_utilization=share,
        max_model_len=196_608, vllm_version="0.29.0",
    )  # fmt: skip
    assert answer.fits is fits
    assert answer.kv_available_gib_per_gpu == pytest.approx(logged, rel=0.02)


def test_published_failures_are_not_called_a_fit() -> None:
    """Start-up failures of the shared cases whose set-up is known: 16 and 27 of vLLM 0.7 and 0.14, 31 of 0.15."""
    qwen = json.loads(
        (Path(__file__).parents[1] / "facts/architecture_configs/Qwen--Qwen2.5-32B-Instruct.json").read_text()
    )
    small = read_config(qwen | {"intermediate_size": 13824, "num_hidden_layers": 48, "max_position_embeddings": 131072})
    rtx = GPUS.gpu("RTX-4090-24GB").model_copy(update={"usable_gib": 23.64})
    assert not fit(small, [rtx], 2, gpu_memory_utilization=0.98, vllm_version="0.7.0").fits
    assert not fit(GPUS.model("gpt-oss-120b"), [GPUS.gpu("H100-SXM-80GB")], vllm_version="0.14.1").fits
    coder = GPUS.model("Qwen/Qwen3-30B-A3B-FP8").model_copy(update={"max_context": 262_144})
    unlike = [GPUS.gpu("RTX-5090-32GB").model_copy(update={"usable_gib": gib}) for gib in (15.5, 31.4)]
    assert not fit(coder, unlike, partition=(16, 32), vllm_version="0.15.2").fits


@pytest.mark.parametrize(
    ("inner", "vocabulary", "context", "gpu", "tp", "version"),
    [
        (11008, 32_256, 16_384, "T4", 2, "0.4.2"),
        (11008, 32_000, 4_096, "T4", 1, "0.2.7"),
        (14336, 128_256, 131_072, "TPU-v5e-16GB", 1, "0.11.0"),
    ],
    ids=["32", "33", "39"],
)
def test_failure_on_an_old_version_or_a_tpu_is_not_called_a_fit(
    inner: int, vocabulary: int, context: int, gpu: str, tp: int, version: str
) -> None:
    """Shared cases by number: a deepseek-coder 6.7B, a Llama 2 7B, and a Llama 3.1 8B that did not start."""
    keys = {
        "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": inner,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8 if inner > 14_000 else 32,
        "vocab_size": vocabulary, "max_position_embeddings": context,
    }  # fmt: skip
    assert not fit(read_config(keys), [GPUS.gpu(gpu)], tp, max_model_len=context, vllm_version=version).fits


def test_hybrid_model_in_nvfp4_has_the_cache_that_was_logged() -> None:
    """Shared case 41: 5.98 GiB on an RTX 5090 with vLLM 0.24."""
    keys = json.loads((Path(__file__).parents[1] / "facts/architecture_configs/Qwen--Qwen3.5-35B-A3B.json").read_text())
    quantization = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}
    answer = fit(
        read_config(keys | {"quantization_config": quantization}), [GPUS.gpu("RTX-5090-32GB")], max_model_len=131_072,
        kv_cache_dtype="fp8", vllm_version="0.24.0",
    )  # fmt: skip
    assert answer.kv_available_gib_per_gpu == pytest.approx(5.98, rel=0.05)


def read_hybrid(quantization: dict[str, Any] | None = None) -> Checkpoint:
    keys = json.loads((Path(__file__).parents[1] / "facts/architecture_configs/Qwen--Qwen3.5-27B.json").read_text())
    return read_config(keys | ({"quantization_config": quantization} if quantization else {}))


NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}


def test_hybrid_model_needs_a_block_of_each_sequence_for_graphs() -> None:
    """Shared cases 52 and 53: it started without CUDA graphs, and failed while they were captured."""
    keys: dict[str, Any] = {"max_model_len": 32_768, "kv_cache_dtype": "fp8", "vllm_version": "0.26.1"}
    gpu = [GPUS.gpu("RTX-5090-32GB")]
    failed = fit(read_hybrid(NVFP4), gpu, **keys)
    assert not failed.fits
    assert "a block of the cache for each of the 256 sequences of max_num_seqs" in failed.reason
    assert "hold 175 blocks" in failed.reason
    assert fit(read_hybrid(NVFP4), gpu, enforce_eager=True, **keys).fits
    fixes = [fix.settings for fix in failed.fixes]
    assert {"max_num_seqs": 128} in fixes
    assert not any("max_model_len" in settings for settings in fixes)
    assert fit(read_hybrid(NVFP4), gpu, max_num_seqs=128, **keys).fits


@pytest.mark.parametrize(
    ("gpu", "quantization", "logged", "version"),
    [("H100-SXM-80GB", FP8, 856, "0.22.0"), ("RTX-PRO-6000-96GB", None, 556, "0.27.0")],
)
def test_published_counts_of_state_blocks_below_max_num_seqs_are_no_fit(
    gpu: str, quantization: dict[str, Any] | None, logged: int, version: str
) -> None:
    """vllm-project/recipes#551 and #831: both need fewer than 1,024 sequences."""
    arguments: dict[str, Any] = {"gpu_memory_utilization": 0.95, "vllm_version": version}
    assert not fit(read_hybrid(quantization), [GPUS.gpu(gpu)], **arguments).fits
    assert fit(read_hybrid(quantization), [GPUS.gpu(gpu)], max_num_seqs=min(logged, 512), **arguments).fits


def test_state_blocks_are_not_checked_before_the_version_with_the_check() -> None:
    keys: dict[str, Any] = {"max_model_len": 32_768, "kv_cache_dtype": "fp8"}
    assert fit(read_hybrid(NVFP4), [GPUS.gpu("RTX-5090-32GB")], vllm_version="0.19.0", **keys).fits


def test_plan_of_a_hybrid_model_has_fewer_sequences_and_cuda_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = json.loads((Path(__file__).parents[1] / "facts/architecture_configs/Qwen--Qwen3.5-27B.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"quantization_config": NVFP4}))
    model = "{source: acme/hybrid, architecture: ./config.json, context: 32768}"
    found = one("{gpu: RTX-5090-32GB, nodes: 1}", model)
    assert found.max_num_seqs == 128
    assert "enforce_eager" not in found.engine


@pytest.mark.parametrize(
    ("name", "taken", "others"),
    [
        ("H100", "H100-SXM-80GB", {"H100-PCIe-80GB", "H100-NVL-94GB"}),
        ("A100", "A100-SXM-80GB", {"A100-SXM-40GB", "A100-PCIe-40GB", "A100-PCIe-80GB"}),
        ("A100-80", "A100-SXM-80GB", {"A100-PCIe-80GB"}),
        ("a100", "A100-SXM-80GB", {"A100-SXM-40GB", "A100-PCIe-40GB", "A100-PCIe-80GB"}),
    ],
)
def test_ambiguous_gpu_name_says_what_was_taken(name: str, taken: str, others: set[str]) -> None:
    said = GPUS.explain_gpu_name(name)
    assert f"is read as {taken}; it could also be " in said
    assert set(said.partition("could also be ")[2].split(", ")) == others


@pytest.mark.parametrize("name", ["H100-SXM-80GB", "B200", "L4", "A10", "RTX 4090", "H20", "H100-SXM-80GB/3g.40gb"])
def test_name_of_one_gpu_needs_no_explanation(name: str) -> None:
    assert GPUS.explain_gpu_name(name) == ""


def test_fit_command_says_which_gpu_was_taken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run(capsys, monkeypatch, "fit", "--model", "Qwen/Qwen3-8B", "--gpu", "A100", "--format", "json")
    assert json.loads(said.out)["notes"] == [GPUS.explain_gpu_name("A100")]


@pytest.mark.parametrize(
    ("name", "gib", "fast"),
    [
        *[("B300", 268.59, True), ("GB300", 277.54, True), ("H20", 95.0, True), ("L20", 44.53, False)],
        *[("L2", 22.35, False), ("A40", 44.35, False), ("RTX 3090 Ti", 23.58, False), ("H200 NVL", 139.8, True)],
        *[("A100-PCIe-40GB", 39.38, False), ("RTX PRO 6000 Max-Q", 95.6, False)],
    ],
)
def test_added_gpu_can_be_planned_with(name: str, gib: float, fast: bool) -> None:
    gpu = GPUS.gpu(name)
    assert (gpu.usable_gib, gpu.link.fast) == (gib, fast)
    assert fit(GPUS.model("Qwen/Qwen3-8B"), [gpu], max_model_len=4096).fits


def test_gpu_without_known_memory_is_not_called_a_fit() -> None:
    answer = fit(GPUS.model("Qwen/Qwen3-8B"), [GPUS.gpu("Gaudi 3")])
    assert not answer.fits
    assert "the usable memory of Gaudi-3-128GB is not known" in answer.unknown


@pytest.mark.parametrize("name", ["GB200", "MI250X", "MI350X", "MI355X", "GH200", "RTX 5060 Ti", "R9700"])
def test_gpu_whose_memory_was_not_measured_counts_with_the_least_and_says_so(name: str) -> None:
    gpu = GPUS.gpu(name)
    assert gpu.usable_gib == pytest.approx(0.91 * (gpu.memory_gb or 0), abs=0.01)
    answer = fit(GPUS.model("Qwen/Qwen3-0.6B"), [gpu], max_model_len=4096)
    assert answer.fits
    assert [note for note in answer.notes if gpu.id in note and "was not measured" in note]


def test_no_measured_gpu_has_a_smaller_part_of_its_memory_than_is_assumed() -> None:
    measured = [gpu for gpu in GPUS.gpus() if gpu.usable_gib and gpu.memory_gb and not gpu.unified_memory]
    assert min((gpu.usable_gib or 0) / (gpu.memory_gb or 1) for gpu in measured) >= LEAST_USABLE - 1e-3


def test_plan_warns_of_a_gpu_whose_memory_was_not_measured() -> None:
    found = plan(
        """
fleet: rack
pools: {gb: {gpu: GB200, nodes: 2, gpusPerNode: 4, network: rdma-400g}}
models: {chat: {source: Qwen/Qwen3-32B, context: 8192}}
"""
    )
    assert found.models["chat"].replicas == 1
    assert any("pool `gb`: the usable memory of GB200-186GB was not measured" in text for text in found.warnings)
