"""CPU stand-in: a change of values, made before Helm, so that a computer without a GPU can serve a fleet.

Each model keeps its name, route and task. Its weights become those of a tiny model of the same architecture family, and
its engine a CPU engine. Pure; `checkpoint.py` writes the files that the new sources name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.adapters import Lora, LoraAdapter
from rayhelm.deploy.values.ray_service.engine import Engine
from rayhelm.deploy.values.ray_service.groups import WorkerGpu
from rayhelm.deploy.values.ray_service.serve import (
    Accelerator,
    CustomApplication,
    CustomDeployment,
    IngressDeployment,
    ModelAutoscaling,
    ServeApplication,
    ServedModel,
)
from rayhelm.deploy.values.ray_service.weights import WeightsVolume
from rayhelm.facts.tasks import load_tasks
from rayhelm.run.standin.adapters import ADAPTERS, COUNT, RANK
from rayhelm.run.standin.families import POSITIONS, is_family
from rayhelm.run.standin.small_model import Downloaded, build_small_model

__all__ = ["CACHE_BYTES", "StandIn", "adapt_for_local_gpus", "make_stand_in"]

CACHE_BYTES = 64 * 1024 * 1024
"""KV cache of each engine; a tiny model needs about 2 KiB per token (DeepSeek: 5 KiB)."""
SEQUENCES = 8
"""Largest number of requests that an engine runs at the same time."""
_KEPT_ARGUMENTS = ("allowed_media_domains", "limit_mm_per_prompt")
"""Engine arguments of the fleet that a tiny model has too: they decide which images it accepts."""

_VISION = "Idefics3ForConditionalGeneration"
_IMPORTS_TORCHVISION = "it sees images too; vLLM's own class imports torchvision, which has to match torch"
_TEXT_ONLY = "its language model, without the vision tower"

_NEAREST: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        (
            "Gemma3ForConditionalGeneration",
            "LlavaForConditionalGeneration",
            "Mistral3ForConditionalGeneration",
            "Qwen2VLForConditionalGeneration",
            "Qwen2_5_VLForConditionalGeneration",
            "Qwen3VLForConditionalGeneration",
        ),
        (_VISION, _IMPORTS_TORCHVISION),
    ),
    **dict.fromkeys(
        (
            "Gemma4ForConditionalGeneration",
            "KimiK25ForConditionalGeneration",
            "Llama4ForConditionalGeneration",
            "Qwen3VLMoeForConditionalGeneration",
            "Qwen3_5ForConditionalGeneration",
            "Qwen3_5MoeForConditionalGeneration",
        ),
        (_VISION, "it sees images too"),
    ),
    **dict.fromkeys(
        ("DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM"),
        ("DeepseekV3ForCausalLM", "also latent attention and experts, without the sparse attention"),
    ),
    **dict.fromkeys(
        ("MiMoV2FlashForCausalLM", "MiniMaxM2ForCausalLM"), ("MixtralForCausalLM", "also a mixture of experts")
    ),
    "Qwen3NextForCausalLM": ("Qwen3MoeForCausalLM", "also a mixture of experts, without the recurrent layers"),
    "NemotronHForCausalLM": ("LlamaForCausalLM", "its layers of attention, without those of Mamba"),
    "GptOssForCausalLM": (
        "MixtralForCausalLM",
        "also a mixture of experts; gpt-oss needs its harmony vocabulary, which has to be downloaded",
    ),
}

_WITH_ADAPTERS: Mapping[str, str] = {
    "Gemma3ForConditionalGeneration": "Gemma3ForCausalLM",
    "Mistral3ForConditionalGeneration": "MistralForCausalLM",
}
"""The tiny adapters are for language models."""


@dataclass(frozen=True)
class StandIn:
    """Values that a computer without a GPU can serve, and what differs from the fleet."""

    values: RayServiceValues
    families: frozenset[str]
    """Tiny models whose files have to exist."""
    notes: tuple[str, ...]
    """A sentence per model: which tiny model replaces it, or why none does."""


def make_stand_in(
    values: RayServiceValues, architectures: Mapping[str, str], folder: Path, small: Downloaded | None = None
) -> StandIn:
    """Replace the models of a service by tiny ones, and chat models by `small` if it is given.

    `architectures` is the family of each model (`LlamaForCausalLM`); the tiny models are in `folder`. Models without a
    stand-in and applications of the user are left out.
    """
    notes: list[str] = []
    families: set[str] = set()
    applications: dict[str, ServeApplication] = {}
    for name, application in values.serve.applications.items():
        models: dict[str, ServedModel] = {}
        for model_id, model in application.models.items():
            if small and _can_be_small(model):
                notes.append(f"{model_id}: {small.model} replaces it; answers are those of a small model")
                models[model_id] = build_small_model(model, small)
                continue
            family, note = _choose_family(architectures.get(model_id, ""), has_adapters=bool(model.lora.adapters))
            notes.append(f"{model_id}: {note}")
            if family:
                families.add(family)
                models[model_id] = _build_tiny_model(model, folder / family)
        if models:
            applications[name] = application.model_copy(
                update={"models": models, "ingress": IngressDeployment(max_replicas=1)}
            )
    custom: dict[str, CustomApplication] = {}
    for name, own in values.serve.custom_applications.items():
        family = architectures.get(str(own.args.get("model")), "")
        if not (_is_of_rayhelm(own) and is_family(family)):
            notes.append(f"{name}: left out: a custom application needs its own weights")
            continue
        notes.append(f"{name}: {_choose_family(family)[1]}")
        families.add(family)
        custom[name] = _build_tiny_application(own, folder / family)
    serve = values.serve.model_copy(update={"applications": applications, "custom_applications": custom})
    groups = {
        name: group.model_copy(update={"gpu": WorkerGpu(count=0)}) for name, group in values.worker_groups.items()
    }
    changed = values.model_copy(
        update={"serve": serve, "worker_groups": groups, "weights": WeightsVolume(enabled=False)}
    )
    return StandIn(changed, frozenset(families), tuple(notes))


def adapt_for_local_gpus(values: RayServiceValues) -> RayServiceValues:
    """Change values to use the GPUs of this computer: no worker groups, and weights directly from their source."""
    applications = {
        name: application.model_copy(
            update={
                "models": {key: _remove_worker_groups(model) for key, model in application.models.items()},
                "ingress": application.ingress.model_copy(update={"worker_group": ""}),
            }
        )
        for name, application in values.serve.applications.items()
    }
    custom = {
        name: _read_from_hub(application, values.weights.mount_path)
        for name, application in values.serve.custom_applications.items()
    }
    serve = values.serve.model_copy(update={"applications": applications, "custom_applications": custom})
    hub = WeightsVolume(enabled=False, offline=False, online_reason="one computer, which downloads the weights itself")
    return values.model_copy(update={"serve": serve, "weights": hub})


def _can_be_small(model: ServedModel) -> bool:
    """Return whether any instruct model can answer for it: adapters and images need the family of the model."""
    return model.task == "chat" and not model.lora.adapters and not _keep_arguments(model)


def _choose_family(architecture: str, *, has_adapters: bool = False) -> tuple[str, str]:
    if has_adapters and architecture in _WITH_ADAPTERS:
        family = _WITH_ADAPTERS[architecture]
        return family, f"a tiny {family} with random weights replaces it ({_TEXT_ONLY}: it has adapters)"
    if is_family(architecture):
        return architecture, f"a tiny {architecture} with random weights replaces it"
    if architecture in _NEAREST:
        family, why = _NEAREST[architecture]
        return family, f"a tiny {family} with random weights replaces it ({why})"
    return "", f"left out: there is no tiny model of family {architecture or 'unknown'}"


def _build_tiny_model(model: ServedModel, source: Path) -> ServedModel:
    context = min(model.engine.max_model_len, POSITIONS)
    sequences = min(model.engine.max_num_seqs, SEQUENCES)
    return ServedModel(
        source=str(source),
        task=model.task,
        lora=_build_tiny_adapters(model, source),
        aliases=model.aliases,
        engine=Engine(
            max_model_len=context,
            max_num_seqs=sequences,
            # Encoders process a whole input in one step.
            max_num_batched_tokens=POSITIONS,
            dtype="float32",
            enforce_eager=True,
            load_format="dummy",
            extra={"kv_cache_memory_bytes": CACHE_BYTES} | _keep_arguments(model),
        ),
        accelerator=Accelerator(kind="cpu"),
        autoscaling=ModelAutoscaling(target_ongoing_requests=min(model.autoscaling.target_ongoing_requests, sequences)),
        router=model.router,
        graceful_shutdown_seconds=5,
    )


def _is_of_rayhelm(application: CustomApplication) -> bool:
    """Return whether an application is part of rayhelm, so that it can do without weights."""
    return any(
        task.application and task.application.import_path == application.import_path for task in load_tasks().values()
    )


def _build_tiny_application(application: CustomApplication, source: Path) -> CustomApplication:
    """Replace the model and its other parts by folders of the tiny model, in a replica that any computer can run."""
    parts = {role: str(source / role) for role in application.args if role not in ("model", "source")}
    deployments = {
        name: CustomDeployment(target_ongoing_requests=own.target_ongoing_requests, graceful_shutdown_seconds=5)
        for name, own in application.deployments.items()
    }
    arguments = {"model": application.args["model"], "source": str(source), **parts, "load_format": "dummy"}
    return application.model_copy(update={"args": arguments, "hub_models": {}, "deployments": deployments})


def _read_from_hub(application: CustomApplication, mount: str) -> CustomApplication:
    """Replace paths on the volume by `ID@REVISION` of the hub, and drop the worker groups."""
    sources = {
        f"{mount}/{name}/{revision or 'main'}": f"{name}@{revision}" if revision else name
        for name, revision in application.hub_models.items()
    }
    deployments = {name: own.model_copy(update={"worker_group": ""}) for name, own in application.deployments.items()}
    arguments = {
        key: sources.get(value, value) if isinstance(value, str) else value for key, value in application.args.items()
    }
    return application.model_copy(update={"args": arguments, "hub_models": {}, "deployments": deployments})


def _keep_arguments(model: ServedModel) -> dict[str, object]:
    return {name: model.engine.extra[name] for name in _KEPT_ARGUMENTS if name in model.engine.extra}


def _build_tiny_adapters(model: ServedModel, source: Path) -> Lora:
    """Replace the adapters by tiny ones; neighbors in the list get different ones."""
    adapters = {
        name: LoraAdapter(source=str(source / ADAPTERS / str(number % COUNT)))
        for number, name in enumerate(sorted(model.lora.adapters))
    }
    return model.lora.model_copy(update={"adapters": adapters, "max_rank": RANK})


def _remove_worker_groups(model: ServedModel) -> ServedModel:
    return model.model_copy(update={"worker_groups": [], "resources": {}})
