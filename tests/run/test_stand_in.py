"""The stand-in as what it is: a pure change of values."""

import json
from pathlib import Path

import pytest

from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.engine import Engine
from rayhelm.deploy.values.ray_service.serve import (
    CustomApplication,
    IngressDeployment,
    ModelAutoscaling,
    Router,
    Serve,
    ServeApplication,
    ServedModel,
)
from rayhelm.facts import load_catalog
from rayhelm.run.standin.checkpoint import write_checkpoint
from rayhelm.run.standin.families import POSITIONS, build_config, list_families
from rayhelm.run.standin.model import StandIn, adapt_for_local_gpus, make_stand_in

FOLDER = Path("/tiny")
SPEECH = {"DiaForConditionalGeneration", "SpeechT5ForTextToSpeech"}
"""Families without a vocabulary of tokenizers: one of sentencepiece, and none."""


def values(**models: ServedModel) -> RayServiceValues:
    applications = {name.replace("_", "-"): ServeApplication(models={name: model}) for name, model in models.items()}
    return RayServiceValues(serve=Serve(applications=applications), tenant="search")


def model(**changes: object) -> ServedModel:
    large = {
        "source": "meta-llama/Llama-3.1-405B-Instruct",
        "revision": "0" * 40,
        "engine": Engine(
            tensor_parallel_size=8,
            pipeline_parallel_size=4,
            max_model_len=131072,
            max_num_seqs=256,
            max_num_batched_tokens=8192,
            quantization="fp8",
            kv_cache_dtype="fp8",
        ),
        "worker_groups": ["h100"],
        "resources": {"gpu": 1},
        "gpu_fraction": 0.5,
        "accelerator_type": "H100",
        "autoscaling": ModelAutoscaling(min_replicas=2, max_replicas=4, target_ongoing_requests=48),
        "env": {"VLLM_PP_LAYER_PARTITION": "20,20"},
    }
    return ServedModel.model_validate({**large, **changes})


def tiny(architecture: str, **changes: object) -> tuple[StandIn, ServedModel]:
    result = make_stand_in(values(chat=model(**changes)), {"chat": architecture}, FOLDER)
    return result, result.values.serve.applications["chat"].models["chat"]


def test_stand_in_requests_no_gpu_and_no_worker_group() -> None:
    _, small = tiny("LlamaForCausalLM")
    assert small.accelerator.kind == "cpu"
    assert (small.engine.tensor_parallel_size, small.engine.pipeline_parallel_size) == (1, 1)
    assert (small.gpu_fraction, small.accelerator_type, small.worker_groups, small.resources) == (1, None, [], {})
    assert small.env == {}


def test_stand_in_weights_are_random_and_not_quantized() -> None:
    _, small = tiny("LlamaForCausalLM")
    assert (small.source, small.revision) == ("/tiny/LlamaForCausalLM", "")
    assert (small.engine.load_format, small.engine.dtype, small.engine.quantization) == ("dummy", "float32", None)
    assert small.engine.kv_cache_dtype == "auto"


def test_stand_in_has_one_replica_per_model() -> None:
    _, small = tiny("LlamaForCausalLM")
    assert (small.autoscaling.min_replicas, small.autoscaling.max_replicas) == (1, 1)
    assert small.autoscaling.target_ongoing_requests == small.engine.max_num_seqs, "it aims at what it does at once"


def test_stand_in_keeps_names_routes_and_tasks() -> None:
    result, small = tiny("LlamaForCausalLM", task="chat", router=Router(kind="PrefixAffinity"))
    assert set(result.values.serve.applications) == {"chat"}
    assert small.task == "chat"
    assert small.router.kind == "PrefixAffinity"
    assert result.values.tenant == "search"


@pytest.mark.parametrize(("asked", "given"), [(131072, POSITIONS), (2048, 2048)])
def test_stand_in_context_is_at_most_that_of_the_tiny_model(asked: int, given: int) -> None:
    engine = Engine(max_model_len=asked, max_num_seqs=4, max_num_batched_tokens=4096)
    _, small = tiny("LlamaForCausalLM", engine=engine)
    assert small.engine.max_model_len == given
    assert small.engine.max_num_seqs == 4
    assert small.engine.max_num_batched_tokens >= small.engine.max_model_len


def test_make_stand_in_does_not_change_its_input() -> None:
    before = values(chat=model())
    make_stand_in(before, {"chat": "LlamaForCausalLM"}, FOLDER)
    assert before == values(chat=model())


def test_stand_in_of_a_similar_family_is_named_in_a_note() -> None:
    result, small = tiny("GptOssForCausalLM")
    assert small.source == "/tiny/MixtralForCausalLM"
    assert "harmony" in result.notes[0]


@pytest.mark.parametrize("architecture", ["Gemma3ForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration"])
def test_stand_in_of_a_model_that_sees_images_sees_images(architecture: str) -> None:
    limits = {"allowed_media_domains": ["images.example"], "limit_mm_per_prompt": {"image": 2}}
    engine = {"max_model_len": 4096, "max_num_seqs": 4, "max_num_batched_tokens": 4096, "extra": {**limits, "seed": 1}}
    result, small = tiny(architecture, engine=engine)
    assert small.source == "/tiny/Idefics3ForConditionalGeneration"
    assert small.engine.extra.items() >= limits.items()
    assert "seed" not in small.engine.extra
    assert "it sees images too" in result.notes[0]


def test_model_that_sees_images_and_has_adapters_becomes_its_language_model() -> None:
    lora = {"slots": 1, "max_rank": 8, "adapters": {"legal": {"source": "/adapters/legal"}}}
    result, small = tiny("Gemma3ForConditionalGeneration", lora=lora)
    assert small.source == "/tiny/Gemma3ForCausalLM"
    assert "it has adapters" in result.notes[0]


def test_family_without_stand_in_is_left_out_with_a_note() -> None:
    both = values(chat=model(), other=model())
    result = make_stand_in(both, {"chat": "LlamaForCausalLM", "other": "JambaForCausalLM"}, FOLDER)
    assert set(result.values.serve.applications) == {"chat"}
    assert any(note.startswith("other: left out") for note in result.notes)


def test_unknown_architecture_is_left_out_with_a_note() -> None:
    result = make_stand_in(values(chat=model()), {}, FOLDER)
    assert result.values.serve.applications == {}
    assert result.families == frozenset()
    assert "unknown" in result.notes[0]


def test_custom_applications_are_left_out_with_a_note() -> None:
    serve = Serve(custom_applications={"tts": CustomApplication(import_path="speech:app")})
    result = make_stand_in(RayServiceValues(serve=serve), {}, FOLDER)
    assert result.values.serve.custom_applications == {}
    assert result.notes[0].startswith("tts: left out")


def speech(**changes: object) -> RayServiceValues:
    """A service with text to speech as the planner renders it."""
    own = {
        "import_path": "rayhelm.runtime.speech:build_app",
        "args": {"model": "tts", "source": "/models/acme/tts/main", "vocoder": f"/models/acme/vocoder/{'0' * 40}"},
        "hub_models": {"acme/tts": "", "acme/vocoder": "0" * 40},
        "deployments": {"Speech": {"gpus": 0.4, "worker_group": "rtx", "max_replicas": 3}},
    }
    application = CustomApplication.model_validate(own | changes)
    return RayServiceValues(serve=Serve(custom_applications={"tts": application}), tenant="search")


def test_text_to_speech_gets_a_tiny_model_without_gpu() -> None:
    result = make_stand_in(speech(), {"tts": "SpeechT5ForTextToSpeech"}, FOLDER)
    small = result.values.serve.custom_applications["tts"]
    source = "/tiny/SpeechT5ForTextToSpeech"
    assert small.args == {"model": "tts", "source": source, "vocoder": f"{source}/vocoder", "load_format": "dummy"}
    assert small.hub_models == {}
    assert result.families == {"SpeechT5ForTextToSpeech"}
    assert "tiny SpeechT5ForTextToSpeech" in result.notes[0]
    replica = small.deployments["Speech"]
    assert (replica.gpus, replica.worker_group, replica.max_replicas) == (0, "", 1)


def test_application_of_the_user_has_no_stand_in_even_with_a_known_family() -> None:
    result = make_stand_in(speech(import_path="ours:app"), {"tts": "SpeechT5ForTextToSpeech"}, FOLDER)
    assert result.values.serve.custom_applications == {}
    assert result.notes[0].startswith("tts: left out")


def test_local_gpus_read_text_to_speech_from_the_hub() -> None:
    here = adapt_for_local_gpus(speech()).serve.custom_applications["tts"]
    assert here.args == {"model": "tts", "source": "acme/tts", "vocoder": f"acme/vocoder@{'0' * 40}"}
    assert here.hub_models == {}
    assert (here.deployments["Speech"].gpus, here.deployments["Speech"].worker_group) == (0.4, "")


def test_ingress_has_no_worker_group_on_local_gpus() -> None:
    application = ServeApplication(
        models={"chat": model()}, ingress=IngressDeployment(max_replicas=1, worker_group="ingress")
    )
    here = adapt_for_local_gpus(RayServiceValues(serve=Serve(applications={"chat": application})))
    assert here.serve.applications["chat"].ingress == IngressDeployment(max_replicas=1)


def test_every_catalog_model_has_a_stand_in_or_a_reason() -> None:
    reasons = {
        record.architecture: make_stand_in(values(chat=model()), {"chat": record.architecture}, FOLDER).notes[0]
        for record in load_catalog().models()
    }
    unexplained = {name: note for name, note in reasons.items() if "no tiny model" in note}
    assert unexplained == {}


def test_local_gpus_only_drop_worker_groups() -> None:
    here = adapt_for_local_gpus(values(chat=model())).serve.applications["chat"].models["chat"]
    assert here == model(worker_groups=[], resources={})


@pytest.mark.parametrize("family", list_families())
def test_checkpoint_names_its_architecture(family: str, tmp_path: Path) -> None:
    written = write_checkpoint(family, tmp_path)
    assert json.loads((written / "config.json").read_text())["architectures"] == [family]


@pytest.mark.parametrize("family", [name for name in list_families() if name not in SPEECH])
def test_vocabulary_of_a_checkpoint_fits_the_model(family: str, tmp_path: Path) -> None:
    written = write_checkpoint(family, tmp_path)
    tokenizer = json.loads((written / "tokenizer.json").read_text())["model"]["vocab"]
    assert sorted(tokenizer.values()) == list(range(len(tokenizer)))
    config = build_config(family)
    assert len(tokenizer) <= config.get("text_config", config)["vocab_size"]


@pytest.mark.parametrize("family", [name for name in list_families() if "head_dim" in build_config(name)])
def test_head_size_is_supported_on_cpus(family: str) -> None:
    assert build_config(family)["head_dim"] >= 32


def test_write_checkpoint_keeps_unchanged_files(tmp_path: Path) -> None:
    first = write_checkpoint("LlamaForCausalLM", tmp_path) / "config.json"
    before = first.stat().st_mtime_ns
    write_checkpoint("LlamaForCausalLM", tmp_path)
    assert first.stat().st_mtime_ns == before


def test_write_checkpoint_replaces_damaged_files(tmp_path: Path) -> None:
    broken = write_checkpoint("LlamaForCausalLM", tmp_path) / "tokenizer.json"
    broken.write_text("{")
    write_checkpoint("LlamaForCausalLM", tmp_path)
    assert json.loads(broken.read_text())["version"] == "1.0"
