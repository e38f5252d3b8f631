"""Models that the fleet file describes itself: by their memory, or by the architecture of another model."""

from collections.abc import Iterator
from pathlib import Path

from rayhelm.errors import Fix, FleetError, Problem, attempt
from rayhelm.facts import Catalog
from rayhelm.facts.huggingface import resolve
from rayhelm.facts.model import Checkpoint, StatedMemory
from rayhelm.facts.stated import build_stated_model
from rayhelm.facts.tensors import count_weights
from rayhelm.fleet.models import ModelSpec
from rayhelm.fleet.problems import problem_at

__all__ = ["check_architecture", "find_stated_model"]

_SAME = 0.03
"""Largest relative difference of two counts of the parameters of one model."""


def find_stated_model(name: str, spec: ModelSpec, folder: Path, facts: Catalog) -> Checkpoint:
    """Return the model with the memory of the fleet file. Raises FleetError if more or less is stated than needed."""
    path = ("models", name)
    assert spec.memory is not None
    if spec.architecture:
        message = "`architecture` describes the memory too, and only one of the two can hold"
        raise FleetError(problem_at((*path, "memory"), message, Fix.removal()))
    if found := _resolve(spec.source, folder, facts):
        gib = count_weights(found).bytes / 2**30
        message = f"{found.id} is known, with weights of {gib:.1f} GiB: `memory` is for models that cannot be read"
        raise FleetError(problem_at((*path, "memory"), message, Fix.removal()))
    if spec.context is None:
        message = "`memory` needs `context`, the longest prompt and response together: the model's own is not known"
        raise FleetError(problem_at((*path, "memory"), message, Fix("../context", 8192)))
    memory = StatedMemory(weights=spec.memory.weights, kv_per_token=spec.memory.kv_per_token)
    return build_stated_model(spec.source, memory, kv_heads=spec.memory.kv_heads, context=spec.context, task=spec.task)


def check_architecture(
    name: str, spec: ModelSpec, model: Checkpoint, folder: Path, facts: Catalog
) -> Iterator[Problem]:
    """Yield the contradiction of an `architecture` that has another size than the `source`, where both are known."""
    if not spec.architecture or not (source := _resolve(spec.source, folder, facts)):
        return
    ours, theirs = count_weights(model), count_weights(source)
    if abs(ours.parameters - theirs.parameters) > _SAME * theirs.parameters:
        said = f"{_billions(ours.parameters)} parameters, and `source` {source.id} has {_billions(theirs.parameters)}"
    elif abs(ours.bytes - theirs.bytes) > _SAME * theirs.bytes:
        said = f"weights of {ours.bytes / 2**30:.1f} GiB, and `source` {source.id} of {theirs.bytes / 2**30:.1f} GiB"
    else:
        return
    message = f"{model.id} has {said}"
    yield problem_at(("models", name, "architecture"), message, Fix(value=source.id))


def _resolve(name: str, folder: Path, facts: Catalog) -> Checkpoint | None:
    """Return the model of a name without the network; None if it is not known."""
    return attempt(lambda: resolve(name, folder, facts))


def _billions(count: int) -> str:
    return f"{count / 1e9:.1f} billion"
