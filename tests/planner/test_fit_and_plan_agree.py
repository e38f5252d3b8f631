"""`plan` completes and evaluates the settings of an engine as `fit` does."""

import pytest

from rayhelm.errors import Fix
from rayhelm.facts import load_catalog
from shared.fits import fit
from shared.fleets import one, refused

H100 = "{gpu: H100-SXM-80GB, nodes: 1, gpusPerNode: 8}"


@pytest.mark.parametrize(("share", "utilization"), [(0.6, 0.55), (0.95, 0.87)])
def test_plan_and_fit_have_the_same_cache(share: float, utilization: float) -> None:
    source, gpu = "openai/whisper-large-v3", "RTX-2070-8GB"
    engine = {"max_num_seqs": 256, "enforce_eager": True}
    pins = f"gpuFraction: {share}, engine: {{max_num_seqs: 256, enforce_eager: true}}"
    planned = one(f"{{gpu: {gpu}, nodes: 1}}", f"{{source: {source}, task: transcribe, {pins}}}")
    facts = load_catalog()
    answer = fit(facts.model(source), [facts.gpu(gpu)], gpu_memory_utilization=utilization, **engine)
    assert planned.gpu_memory_utilization == utilization
    assert planned.kv_cache_tokens == answer.kv_cache_tokens


def test_refused_context_parallel_size_has_the_fix_of_fit() -> None:
    problem = refused(H100, "{source: Qwen/Qwen3-8B, engine: {decode_context_parallel_size: 3}}")
    assert "decode_context_parallel_size 3 does not divide the 1 ranks" in problem.message


def test_context_that_fits_is_that_of_the_pinned_cache_type() -> None:
    source, gpu = "meta-llama/Llama-3.1-8B-Instruct", "L4-24GB"
    problem = refused(
        f"{{gpu: {gpu}, nodes: 1}}", f"{{source: {source}, context: 131072, engine: {{kv_cache_dtype: fp8}}}}"
    )
    facts = load_catalog()
    answer = fit(facts.model(source), [facts.gpu(gpu)], kv_cache_dtype="fp8")
    assert isinstance(problem.fix, Fix)
    assert problem.fix.why == f"the longest that fits, without CUDA graphs; with them {answer.largest_context}"
    assert problem.fix.value > (answer.largest_context or 0)
