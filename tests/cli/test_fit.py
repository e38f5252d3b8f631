"""`fit`: results for the reference fleets and for any model on any GPU."""

import json
import math
import random

import click
import pytest
import typer
from typer.testing import CliRunner

from rayhelm.cli.fit import fit_command
from rayhelm.errors import FleetError, RayhelmError
from rayhelm.facts import load_catalog
from rayhelm.planner.memory.fit import Fit
from shared.fits import fit

A4000, A5000, H100 = "RTX-A4000-16GB", "RTX-A5000-24GB", "H100-SXM-80GB"
AWQ = "Qwen/Qwen3-32B-AWQ"
LLAMA = "meta-llama/Llama-3.1-{}-Instruct"
ARTICLE = {"gpu_memory_utilization": 0.9, "max_num_seqs": 256, "enforce_eager": True}


def ask(model: str, *gpus: str, **settings) -> Fit:
    return fit(load_catalog().model(model), [load_catalog().gpu(gpu) for gpu in gpus], **settings)


@pytest.mark.parametrize("context", [4096, 16384])
@pytest.mark.parametrize("settings", [ARTICLE, {}])
def test_a4000_is_too_small_for_the_32b_weights(context, settings) -> None:
    answer = ask(AWQ, A4000, max_model_len=context, **settings)
    assert not answer.fits
    assert answer.weights_gib_per_gpu == pytest.approx(18.0, abs=0.1)
    assert answer.kv_available_gib_per_gpu < 0
    assert "too much" in answer.reason


@pytest.mark.parametrize("settings", [ARTICLE, {}])
def test_a5000_fits_the_32b_tightly_at_a_short_context(settings) -> None:
    answer = ask(AWQ, A5000, max_model_len=4096, **settings)
    assert (answer.fits, answer.tight) == (True, True)
    assert 1.5 < answer.kv_available_gib_per_gpu < 2.4
    assert 6_500 < answer.kv_cache_tokens < 9_500
    assert "fits, tightly" in answer.reason


@pytest.mark.parametrize("settings", [ARTICLE, {}])
def test_a5000_refuses_a_long_context_and_names_the_longest_that_fits(settings) -> None:
    answer = ask(AWQ, A5000, max_model_len=16384, **settings)
    assert not answer.fits
    assert "needs 4.0 GiB of KV cache" in answer.reason
    assert {"max_model_len": answer.largest_context} in [fix.settings for fix in answer.fixes]
    assert ask(AWQ, A5000, max_model_len=answer.largest_context, **settings).fits
    assert not ask(AWQ, A5000, max_model_len=answer.largest_context + 16, **settings).fits


@pytest.mark.parametrize("gpus", [(A5000, A4000), (A4000, A5000)])
@pytest.mark.parametrize("settings", [ARTICLE, {}])
def test_pipeline_over_both_workstations_fits_a_long_context_in_either_order(gpus, settings) -> None:
    answer = ask(AWQ, *gpus, max_model_len=16384, **settings)
    assert (answer.fits, answer.fits_every_order) == (True, True)
    assert answer.pipeline_parallel_size == 2
    assert [(stage.gpu, stage.layers) for stage in answer.stages] == [(gpu, 32) for gpu in gpus]
    first, last = answer.stages
    # The weakest stage decides for both, so most of the larger GPU stays unused.
    assert first.kv_gib == last.kv_gib
    assert answer.gpu == "+".join(gpus)


def test_figures_are_those_of_the_weakest_stage_and_the_last_has_the_sampler() -> None:
    first, last = (ask(AWQ, *gpus, max_model_len=16384, **ARTICLE) for gpus in ((A4000, A5000), (A5000, A4000)))
    small = load_catalog().gpu(A4000).usable_gib
    for answer in (first, last):
        assert answer.kv_available_gib_per_gpu < 0.9 * small - answer.weights_gib_per_gpu
    sampler_state = 256 * 151_936 * 4.125 / 2**30
    assert last.activation_gib - first.activation_gib == pytest.approx(sampler_state)
    assert first.kv_cache_tokens > last.kv_cache_tokens


def test_batches_in_flight_reduce_the_cache_of_windowed_models() -> None:
    gemma = "google/gemma-3-27b-it"
    calm, busy = (ask(gemma, H100, max_model_len=32768, max_num_batched_tokens=n) for n in (2048, 4096))
    blocks = [answer.kv_cache_tokens / 32768 / answer.kv_available_gib_per_gpu for answer in (calm, busy)]
    # 2 batches more of 2048 tokens, 6 groups of windowed layers, 16 tokens a block.
    request = [2048 + 6 * (-(-(1023 + 2 * n) // 16) + 1) for n in (2048, 4096)]
    assert blocks[0] / blocks[1] == pytest.approx(request[1] / request[0], rel=1e-3)


def test_default_batch_is_limited_by_sequences_times_context() -> None:
    answer = ask(LLAMA.format("8B"), H100, max_model_len=2, max_num_seqs=8)
    assert (answer.max_num_seqs, answer.max_num_batched_tokens) == (8, 16)


def test_14b_on_different_gpus_needs_uneven_layers_and_a_fixed_order() -> None:
    even = ask("Qwen/Qwen3-14B", A5000, A4000, max_model_len=4096, **ARTICLE)
    assert not even.fits
    assert any("layers" in fix.settings for fix in even.fixes)
    uneven = ask("Qwen/Qwen3-14B", A5000, A4000, max_model_len=4096, partition=(24, 16), **ARTICLE)
    assert (uneven.fits, uneven.fits_every_order) == (True, False)
    assert [stage.layers for stage in uneven.stages] == [24, 16]


def test_8b_in_16_bits_fits_a_24_gb_gpu_with_a_limited_context() -> None:
    whole = ask(LLAMA.format("8B"), "RTX-4090-24GB")
    assert not whole.fits
    assert 30_000 < whole.largest_context < 45_000
    assert ask(LLAMA.format("8B"), "RTX-4090-24GB", max_model_len=16384).fits
    assert ask(LLAMA.format("8B"), "H100-SXM-80GB").fits


@pytest.mark.parametrize(
    ("tp", "context", "fits"), [(2, 131_072, False), (2, 4096, True), (4, 131_072, True), (1, 512, False)]
)
def test_70b_fit_depends_on_tensor_parallelism_and_context(tp, context, fits) -> None:
    assert ask(LLAMA.format("70B"), H100, tp=tp, max_model_len=context).fits is fits


@pytest.mark.parametrize(("suffix", "pp", "fits"), [("", 1, False), ("", 2, True), ("", 4, True), ("-FP8", 1, True)])
def test_405b_fit_depends_on_pipeline_stages_and_precision(suffix, pp, fits) -> None:
    answer = ask(LLAMA.format("405B") + suffix, H100, tp=8, pp=pp, max_model_len=16384)
    assert answer.fits is fits
    assert len(answer.stages) == (pp if pp > 1 else 0)


def test_memory_terms_add_up_to_the_budget() -> None:
    answer = ask(LLAMA.format("8B"), H100, gpu_memory_utilization=0.8)
    terms = (
        answer.weights_gib_per_gpu,
        answer.activation_gib,
        answer.non_torch_gib,
        answer.cuda_graph_gib,
        answer.kv_available_gib_per_gpu,
    )
    assert sum(terms) == pytest.approx(0.8 * load_catalog().gpu(H100).usable_gib)


def test_gpu_fraction_of_half_halves_the_utilization() -> None:
    half, share = ask("BAAI/bge-m3", H100, share=0.5), ask("BAAI/bge-m3", H100, gpu_memory_utilization=0.46)
    assert half == share
    assert half.gpu_memory_utilization == pytest.approx(0.46)


def test_model_without_a_cache_runs_max_num_seqs_requests() -> None:
    answer = ask("BAAI/bge-large-en-v1.5", "L4-24GB", share=0.25)
    assert (answer.fits, answer.kv_cache_tokens, answer.max_concurrency) == (True, 0, 256)


def test_fit_knows_only_the_weights_of_another_application() -> None:
    answer = ask("microsoft/speecht5_tts", "T4-16GB", share=0.25)
    assert (answer.fits, answer.tight) == (True, True)
    assert (answer.kv_available_gib_per_gpu, answer.activation_gib, answer.max_concurrency) == (None, None, None)
    assert answer.weights_gib_per_gpu > 0
    assert "served by its own application" in answer.unknown[0]


def test_refused_split_has_no_figures_and_names_valid_sizes() -> None:
    answer = ask(LLAMA.format("70B"), H100, tp=3)
    assert (answer.fits, answer.weights_gib_per_gpu) == (False, None)
    assert "64 attention heads are not divisible" in answer.reason
    (only,) = answer.fixes
    assert only.settings == {"tensor_parallel_size": 4}
    assert "1, 2, 4, 8, 16, 32" in only.why


def test_fit_gives_no_figures_when_the_gpu_memory_is_unknown() -> None:
    blank = load_catalog().gpu(H100).model_copy(update={"usable_gib": None})
    answer = fit(load_catalog().model(LLAMA.format("8B")), [blank])
    assert (answer.fits, answer.kv_available_gib_per_gpu) == (False, None)
    assert "is not known" in answer.reason


def test_fixes_from_the_catalog_fit() -> None:
    answer = ask(LLAMA.format("405B"), H100, tp=8, max_model_len=16384, facts=load_catalog())
    assert any("FP8" in str(fix.settings.get("source")) for fix in answer.fixes)
    assert "pipeline_parallel_size: 2   # 16 x H100-SXM-80GB" in map(str, answer.fixes)
    gpu = next(str(fix.settings["gpu"]) for fix in answer.fixes if "gpu" in fix.settings)
    assert ask(LLAMA.format("405B"), gpu, tp=8, max_model_len=16384).fits


def test_fit_names_the_version_of_its_constants() -> None:
    assert "planned with those of 0.17.0" in " ".join(ask(AWQ, A5000, vllm_version="0.18.0").unknown)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_model_len": 200_000}, "131072 tokens"),
        ({"gpu_memory_utilization": 1.5}, "not between 0 and 1"),
        ({"share": 0}, "not between 0 and 1"),
        ({"share": math.nan}, "not between 0 and 1"),
        ({"max_num_seqs": 0}, "max_num_seqs 0 is not between 1 and"),
        ({"tp": 0}, "tensor_parallel_size 0 is not between 1 and"),
        ({"max_model_len": -5}, "max_model_len -5 is not between 1 and"),
        ({"max_num_batched_tokens": 10**400}, "is not between 1 and 16,777,216"),
        ({"vllm_version": "9" * 5000 + ".1"}, "not a version of vLLM"),
        ({"kv_cache_dtype": "fp3"}, "unknown kv_cache_dtype"),
        ({"vllm_version": "new"}, "not a version of vLLM"),
        ({"pp": 2, "partition": (30, 3)}, "do not split the 32"),
    ],
)
def test_fit_refuses_settings_out_of_range(settings, said) -> None:
    with pytest.raises(FleetError, match=said):
        ask(LLAMA.format("8B"), H100, **settings)


def test_fit_takes_one_gpu_or_one_per_stage() -> None:
    with pytest.raises(FleetError, match="2 GPUs for 3 pipeline stages"):
        ask(AWQ, A5000, A4000, pp=3)


def _some_asks(count: int) -> list[tuple[str, str, int]]:
    choose = random.Random(7)
    models, gpus = [m.id for m in load_catalog().models()], [g.id for g in load_catalog().gpus()]
    return [(choose.choice(models), choose.choice(gpus), choose.choice((1, 2, 4, 8))) for _ in range(count)]


@pytest.mark.parametrize(("model", "gpu", "tp"), _some_asks(150))
def test_fit_invariants_for_any_model_on_any_gpu(model, gpu, tp) -> None:
    top = load_catalog().model(model).max_context
    short, long = (ask(model, gpu, tp=tp, max_model_len=max(1, top // part)) for part in (8, 1))
    for answer in (short, long):
        assert answer.fits or answer.fixes
        assert not (answer.tight and not answer.fits)
        assert answer.reason
    if short.kv_available_gib_per_gpu is None:
        return
    assert long.max_concurrency <= short.max_concurrency
    assert short.fits or not long.fits
    assert not long.fits or long.largest_context == top
    more = ask(model, gpu, tp=tp, max_model_len=top, gpu_memory_utilization=0.5)
    assert more.kv_available_gib_per_gpu < long.kv_available_gib_per_gpu


def _cli(*arguments: str):
    app = typer.Typer()
    app.command()(fit_command)
    return CliRunner().invoke(app, list(arguments))


def test_fit_command_prints_json() -> None:
    done = _cli("--model", AWQ, "--gpu", A5000, "--gpu", "RTX A4000", "--max-model-len", "16384", "--format", "json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.output)
    assert answer["fits"] is True
    assert answer["pipeline_parallel_size"] == 2
    assert set(answer["stages"][0]) == {"gpu", "layers", "weights_gib", "kv_gib"}
    figures = "weights_gib_per_gpu activation_gib non_torch_gib cuda_graph_gib kv_available_gib_per_gpu max_concurrency"
    assert all(isinstance(answer[name], float) for name in figures.split())
    assert isinstance(answer["kv_cache_tokens"], int)


def test_fit_command_exits_with_0_when_the_model_does_not_fit() -> None:
    done = _cli("--model", AWQ, "--gpu", A4000)
    assert done.exit_code == 0
    assert "does not fit" in done.output
    assert "What would fit:" in done.output


LLAMA_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}


def test_fit_command_reads_a_config_file(tmp_path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LLAMA_CONFIG))
    done = _cli("--config", str(config), "--gpu", "H100 SXM", "--format", "json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["weights_gib_per_gpu"] == pytest.approx(14.96, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--gpu", A4000), "either --model or --config"),
        (("--model", AWQ, "--gpu", "RTX-A4001"), "unknown GPU"),
        (("--model", AWQ, "--gpu", A4000, "--layers", "a,b"), "not a list of numbers"),
        (("--model", "", "--gpu", A4000), "either --model or --config"),
        (("--config", "", "--gpu", A4000), "either --model or --config"),
        (("--model", AWQ, "--gpu", ""), "unknown GPU ''"),
        (("--model", "m" * 300, "--gpu", A4000), "unknown model"),
        (("--model", "~no-such-user/x", "--gpu", A4000), "names no user of this computer"),
        (("--config", "m" * 300 + ".json", "--gpu", A4000), "File name too long"),
    ],
)
def test_fit_command_reports_what_is_wrong(arguments, said, tmp_path, monkeypatch) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_CONFIG))
    monkeypatch.chdir(tmp_path)
    error = _cli(*arguments).exception
    assert isinstance(error, RayhelmError)
    assert said in str(error)
    assert max(len(line) for line in str(error).splitlines()) < 300


@pytest.mark.parametrize(
    "arguments",
    [
        ("--max-num-batched-tokens", "9" * 400),
        ("--max-num-batched-tokens", "9" * 5000),
        ("--max-num-seqs", str(2**24 + 1)),
        ("--max-model-len", "0"),
        ("--tp", "1025"),
        ("--pp", "0"),
        ("--gpu-fraction", "0"),
        ("--gpu-fraction", "nan"),
        ("--gpu-memory-utilization", "1.01"),
    ],
)
def test_fit_command_names_an_option_out_of_range(arguments) -> None:
    done = _cli("--model", AWQ, "--gpu", A4000, *arguments)
    assert done.exit_code == 2
    assert arguments[0] in click.unstyle(done.output)


def test_fix_for_wrong_layers_is_accepted_as_printed() -> None:
    with pytest.raises(FleetError) as error:
        ask(AWQ, A5000, pp=2, partition=(60, 3))
    layers = str(error.value.problems[0].fix).removeprefix("layers: ")
    assert _cli("--model", AWQ, "--gpu", A5000, "--pp", "2", "--layers", layers).exit_code == 0


@pytest.mark.parametrize("name", ["[/foo]", "[red]mine", "a\\"])
def test_fit_command_prints_any_model_name(name, tmp_path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LLAMA_CONFIG | {"_name_or_path": name}))
    done = _cli("--config", str(config), "--gpu", "H100 SXM")
    assert done.exit_code == 0, done.exception
    assert f"{name} on H100-SXM-80GB: " in done.output


def test_fit_notes_that_float32_checkpoints_count_16_bits() -> None:
    halved, plain = ask("BAAI/bge-large-en-v1.5", A4000), ask("Qwen/Qwen3-14B", A4000)
    assert "weights count 16 bits each" in " ".join(halved.notes)
    assert plain.notes == ()
