"""The stand-in: a change of values, made before Helm, that lets a computer without a card serve a fleet.

Each model keeps its name, route and task; its weights become those of a tiny model of the same architecture family, its
engine a CPU engine. Pure; the files that the new sources name are written by `checkpoint.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rayhelm.standin.families import POSITIONS, is_family
from rayhelm.values.ray_service import RayServiceValues
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

__all__ = ["CACHE_BYTES", "StandIn", "local", "stand_in"]

CACHE_BYTES = 64 * 1024 * 1024
"""KV cache of each engine; a tiny model takes some 2 KiB a token (DeepSeek's 5)."""
SEQUENCES = 8
"""Requests that an engine answers together."""

_NEAREST: Mapping[str, tuple[str, str]] = {
    "Gemma3ForConditionalGeneration": ("Gemma3ForCausalLM", "its text half, without the vision tower"),
    "Mistral3ForConditionalGeneration": ("MistralForCausalLM", "its text half, without the vision tower"),
    "GptOssForCausalLM": (
        "MixtralForCausalLM",
        "a mixture of experts too: gpt-oss itself needs its harmony vocabulary, which is a download",
    ),
}
_WITHOUT: Mapping[str, str] = {
    "WhisperForConditionalGeneration": "transcription needs Whisper's own audio front end and vocabulary",
}


@dataclass(frozen=True)
class StandIn:
    """Values that a computer without a card can serve, and what is not as in the fleet."""

    values: RayServiceValues
    families: frozenset[str]
    """Tiny models whose files have to be there."""
    notes: tuple[str, ...]
    """One sentence for each model: who stands in for it, or why nobody does."""


def stand_in(values: RayServiceValues, architectures: Mapping[str, str], folder: Path) -> StandIn:
    """`architectures` tells the family of each model (`LlamaForCausalLM`), `folder` where the tiny models lie. Models
    that nobody stands in for are left out, and so are applications of your own."""
    notes: list[str] = []
    families: set[str] = set()
    applications: dict[str, ServeApplication] = {}
    for name, application in values.serve.applications.items():
        models: dict[str, ServedModel] = {}
        for model_id, model in application.models.items():
            family, note = _family(architectures.get(model_id, ""))
            notes.append(f"{model_id}: {note}")
            if family:
                families.add(family)
                models[model_id] = _tiny(model, folder / family)
        if models:
            applications[name] = application.model_copy(
                update={"models": models, "ingress": IngressDeployment(max_replicas=1)}
            )
    notes += [
        f"{name}: left out, an application of its own that needs its weights"
        for name in values.serve.custom_applications
    ]
    serve = values.serve.model_copy(update={"applications": applications, "custom_applications": {}})
    groups = {
        name: group.model_copy(update={"gpu": WorkerGpu(count=0)}) for name, group in values.worker_groups.items()
    }
    changed = values.model_copy(
        update={"serve": serve, "worker_groups": groups, "weights": WeightsVolume(enabled=False)}
    )
    return StandIn(changed, frozenset(families), tuple(notes))


def local(values: RayServiceValues) -> RayServiceValues:
    """The same models on the cards of this computer: no worker group is named, and weights come straight from their
    source."""
    applications = {
        name: application.model_copy(
            update={"models": {key: _unplaced(model) for key, model in application.models.items()}}
        )
        for name, application in values.serve.applications.items()
    }
    serve = values.serve.model_copy(update={"applications": applications})
    hub = WeightsVolume(enabled=False, offline=False, online_reason="one computer, which fetches for itself")
    return values.model_copy(update={"serve": serve, "weights": hub})


def _family(architecture: str) -> tuple[str, str]:
    if is_family(architecture):
        return architecture, f"a tiny {architecture} with random weights stands in for it"
    if architecture in _NEAREST:
        family, why = _NEAREST[architecture]
        return family, f"a tiny {family} with random weights stands in for it ({why})"
    why = _WITHOUT.get(architecture, f"no tiny model of family {architecture or 'unknown'} is at hand")
    return "", f"left out: {why}"


def _tiny(model: ServedModel, source: Path) -> ServedModel:
    context = min(model.engine.max_model_len, POSITIONS)
    sequences = min(model.engine.max_num_seqs, SEQUENCES)
    return ServedModel(
        source=str(source),
        task=model.task,
        engine=Engine(
            max_model_len=context,
            max_num_seqs=sequences,
            # Encoders take a whole input in one step.
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


def _unplaced(model: ServedModel) -> ServedModel:
    return model.model_copy(update={"worker_groups": [], "resources": {}})
