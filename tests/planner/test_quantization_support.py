"""Quantized checkpoints that vLLM refuses on a GPU, or at all: `fit`, `plan` and `estimate` agree."""

import json
from pathlib import Path

import pytest

from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.facts.model import Checkpoint, Quantization
from rayhelm.planner.plan import Plan
from rayhelm.planner.speed.query import SpeedQuery, answer_query
from shared.fits import fit
from shared.fleets import plan

NEEDS_8 = "vLLM 0.29.0 needs compute capability 8.0 for mxfp4 checkpoints, and T4-16GB has 7.5"


def plan_on(gpu: str, source: str) -> Plan:
    return plan(f"""
        fleet: quantized
        pools: {{gpu: {{gpu: {gpu}, nodes: 4, gpusPerNode: 8, price: 1 USD/h}}}}
        models: {{chat: {{source: {source}, context: 4096}}}}
    """)


def quantize(**keys: object) -> Checkpoint:
    quantization = Quantization.model_validate(keys)
    return load_catalog().model("Qwen/Qwen3-8B").model_copy(update={"quantization": quantization})


def test_mxfp4_is_refused_on_turing_by_fit_plan_and_estimate() -> None:
    facts = load_catalog()
    answer = fit(facts.model("openai/gpt-oss-20b"), [facts.gpu("T4-16GB")], 2)
    assert (answer.fits, answer.reason) == (False, NEEDS_8)
    with pytest.raises(FleetError, match=NEEDS_8):
        plan_on("T4-16GB", "openai/gpt-oss-20b")
    query = SpeedQuery(
        model="openai/gpt-oss-20b",
        gpu="T4-16GB",
        tensor_parallel_size=2,
        input_tokens=500,
        output_tokens=200,
        concurrency=1,
    )
    assert f"`rayhelm fit` refuses this: {NEEDS_8}" in answer_query(query).notes


@pytest.mark.parametrize("gpu", ["A100-SXM-80GB", "RTX-A6000-48GB", "MI300X-192GB", "Arc-Pro-B60-24GB"])
def test_mxfp4_is_planned_where_vllm_has_kernels(gpu: str) -> None:
    assert plan_on(gpu, "openai/gpt-oss-20b").models["chat"].gpu == gpu


@pytest.mark.parametrize(
    ("keys", "gpu", "reason"),
    [
        ({"method": "bitsandbytes", "bits": 4}, "H100-SXM-80GB", "no longer reads bitsandbytes checkpoints"),
        ({"method": "modelopt", "bits": 4}, "Arc-Pro-B60-24GB", "no kernels for modelopt_fp4 checkpoints"),
        ({"method": "modelopt", "bits": 8}, "T4-16GB", "needs compute capability 8.0 for modelopt checkpoints"),
        ({"method": "modelopt", "bits": 4}, "T4-16GB", ""),
        ({"method": "modelopt_mixed", "bits": 8}, "T4-16GB", ""),
        ({"method": "modelopt_mixed", "bits": 8}, "Arc-Pro-B60-24GB", "no kernels for modelopt_mixed checkpoints"),
        ({"method": "modelopt_mxfp8", "bits": 8}, "T4-16GB", "needs compute capability 8.0"),
        ({"method": "fp8", "bits": 8}, "T4-16GB", ""),
        ({"method": "modelopt", "bits": 8}, "Arc-Pro-B60-24GB", ""),
    ],
)
def test_fit_names_formats_that_vllm_refuses(keys: dict[str, object], gpu: str, reason: str) -> None:
    answer = fit(quantize(**keys), [load_catalog().gpu(gpu)], 1, max_model_len=2048)
    assert answer.fits == (not reason), answer.reason
    assert reason in answer.reason


@pytest.mark.parametrize(
    ("gpu", "reason"),
    [
        ("Strix-Halo-128GB", "one scale per tensor or channel on Strix-Halo-128GB (gfx1151)"),
        ("MI250X-GCD-64GB", "one scale per tensor or channel on MI250X-GCD-64GB (gfx90a)"),
        ("MI300X-192GB", ""),
        ("Radeon-AI-PRO-R9700-32GB", ""),
        ("RTX-A5000-24GB", ""),
    ],
)
@pytest.mark.parametrize(
    "keys", [{"method": "fp8"}, {"method": "modelopt"}, {"method": "compressed-tensors", "weight_type": "float"}]
)
def test_fp8_with_a_scale_per_tensor_is_refused_on_amd_without_kernels(
    keys: dict[str, object], gpu: str, reason: str
) -> None:
    kind = load_catalog().gpu(gpu)
    answer = fit(quantize(bits=8, **keys), [kind], 1, max_model_len=2048)
    assert answer.fits == (not reason), answer.reason
    assert reason in answer.reason
    assert fit(quantize(method="fp8", bits=8, block=(128, 128)), [kind], 1, max_model_len=2048).fits


def test_int8_of_compressed_tensors_is_accepted_where_fp8_has_no_kernels() -> None:
    int8 = quantize(method="compressed-tensors", bits=8, weight_type="int")
    assert fit(int8, [load_catalog().gpu("Strix-Halo-128GB")], 1, max_model_len=2048).fits


def test_strix_halo_is_not_planned_for_experts_in_fp8() -> None:
    with pytest.raises(FleetError, match="no kernels for experts in FP8 on Strix-Halo-128GB"):
        plan_on("Strix-Halo-128GB", "Qwen/Qwen3-30B-A3B-FP8")
    assert plan_on("Strix-Halo-128GB", "Qwen/Qwen3-8B").models["chat"].gpu == "Strix-Halo-128GB"


def test_other_versions_of_vllm_are_not_compared() -> None:
    model, gpu = quantize(method="bitsandbytes", bits=4), load_catalog().gpu("H100-SXM-80GB")
    assert fit(model, [gpu], 1, max_model_len=2048, vllm_version="0.25.0").fits


def test_deprecated_format_gets_the_argument_that_allows_it() -> None:
    found = plan_on("H200-SXM-141GB", "meta-llama/Llama-3.1-405B-Instruct-FP8").models["chat"]
    assert found.engine["allow_deprecated_quantization"] is True
    assert any("reads fbgemm_fp8 checkpoints only with" in warning for warning in found.warnings)
    other = plan_on("H200-SXM-141GB", "openai/gpt-oss-120b").models["chat"]
    assert "allow_deprecated_quantization" not in other.engine


@pytest.mark.parametrize("method", ["bitsandbytes", "mxfp4", "fbgemm_fp8"])
def test_own_application_may_read_what_vllm_refuses(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    keys = json.loads(
        (Path(__file__).parents[1] / "facts/catalog_configs/meta-llama--Llama-3.2-3B-Instruct.json").read_text()
    )
    Path("config.json").write_text(json.dumps(keys | {"quantization_config": {"quant_method": method}}))
    found = plan("""
        fleet: own
        pools: {gpu: {gpu: T4-16GB, nodes: 1}}
        models:
          own:
            source: acme/own
            architecture: ./config.json
            task: custom
            replicas: 1
            application: {importPath: own:build, deployment: Own, paths: {/v1/own: POST}}
    """).models["own"]
    assert "allow_deprecated_quantization" not in found.engine
    assert not any("vLLM 0.29.0 reads" in warning for warning in found.warnings)
