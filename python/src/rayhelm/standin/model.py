"""CPU stand-in: a change of values, made before Helm, so that a computer without a GPU can serve a fleet.

Each model keeps its name, route and task. Its weights become those of a tiny model of the same architecture family, and
its engine a CPU engine. Pure; `checkpoint.py` writes the files that the new sources name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rayhelm.standin.adapters import ADAPTERS, COUNT, RANK
from rayhelm.standin.families import POSITIONS, is_family
from rayhelm.values.ray_service import RayServiceValues
from rayhelm.values.ray_service.adapters import Lora, LoraAdapter
from rayhelm.values.ray_service.engine import Engine
from rayhelm.values.ray_service.groups import WorkerGpu
from rayhelm.values.ray_service.serve import (
    Accelerator,
    IngressDeployment,
    ModelAutoscaling,
    ServeApplication,
    ServedModel,
)
from rayhelm.values.ray_service.weights import WeightsVolume

__all__ = ["CACHE_BYTES", "StandIn", "adapt_for_local_gpus", "make_stand_in"]

CACHE_BYTES = 64 * 1024 * 1024
"""KV cache of each engine; a tiny model needs about 2 KiB per token (DeepSeek: 5 KiB)."""
SEQUENCES = 8
"""Largest number of requests that an engine runs at the same time."""

_NEAREST: Mapping[str, tuple[str, str]] = {
    "Gemma3ForConditionalGeneration": ("Gemma3ForCausalLM", "its language model, without the vision tower"),
    "Mistral3ForConditionalGeneration": ("MistralForCausalLM", "its language model, without the vision tower"),
    "GptOssForCausalLM": (
        "MixtralForCausalLM",
        "also a mixture of experts; gpt-oss needs its harmony vocabulary, which has to be downloaded",
    ),
}


@dataclass(frozen=True)
class StandIn:
    """Values that a computer without a GPU can serve, and what differs from the fleet."""

    values: RayServiceValues
    families: frozenset[str]
    """Tiny models whose files have to exist."""
    notes: tuple[str, ...]
    """A sentence per model: which tiny model replaces it, or why none does."""


def make_stand_in(values: RayServiceValues, architectures: Mapping[str, str], folder: Path) -> StandIn:
    """Replace the models of a service by tiny ones.

    `architectures` is the family of each model (`LlamaForCausalLM`); the tiny models are in `folder`. Models without a
    stand-in and custom applications are left out.
    """
    notes: list[str] = []
    families: set[str] = set()
    applications: dict[str, ServeApplication] = {}
    for name, application in values.serve.applications.items():
        models: dict[str, ServedModel] = {}
        for model_id, model in application.models.items():
            family, note = _choose_family(architectures.get(model_id, ""))
            notes.append(f"{model_id}: {note}")
            if family:
                families.add(family)
                models[model_id] = _build_tiny_model(model, folder / family)
        if models:
            applications[name] = application.model_copy(
                update={"models": models, "ingress": IngressDeployment(max_replicas=1)}
            )
    notes += [
        f"{name}: left out: a custom application needs its own weights" for name in values.serve.custom_applications
    ]
    serve = values.serve.model_copy(update={"applications": applications, "custom_applications": {}})
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
            update={"models": {key: _remove_worker_groups(model) for key, model in application.models.items()}}
        )
        for name, application in values.serve.applications.items()
    }
    serve = values.serve.model_copy(update={"applications": applications})
    hub = WeightsVolume(enabled=False, offline=False, online_reason="one computer, which downloads the weights itself")
    return values.model_copy(update={"serve": serve, "weights": hub})


def _choose_family(architecture: str) -> tuple[str, str]:
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
        engine=Engine(
            max_model_len=context,
            max_num_seqs=sequences,
            # Encoders process a whole input in one step.
            max_num_batched_tokens=POSITIONS,
            dtype="float32",
            enforce_eager=True,
            load_format="dummy",
            extra={"kv_cache_memory_bytes": CACHE_BYTES},
        ),
        accelerator=Accelerator(kind="cpu"),
        autoscaling=ModelAutoscaling(target_ongoing_requests=min(model.autoscaling.target_ongoing_requests, sequences)),
        router=model.router,
        graceful_shutdown_seconds=5,
    )


def _build_tiny_adapters(model: ServedModel, source: Path) -> Lora:
    """Replace the adapters by tiny ones; neighbors in the list get different ones."""
    adapters = {
        name: LoraAdapter(source=str(source / ADAPTERS / str(number % COUNT)))
        for number, name in enumerate(sorted(model.lora.adapters))
    }
    return model.lora.model_copy(update={"adapters": adapters, "max_rank": RANK})


def _remove_worker_groups(model: ServedModel) -> ServedModel:
    return model.model_copy(update={"worker_groups": [], "resources": {}})
