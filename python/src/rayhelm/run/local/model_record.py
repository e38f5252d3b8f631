"""The data file of a model that vLLM builds: `rayhelm catalog add`. The planner reads the file without vLLM."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rayhelm.deploy.advice import how_to_get_ray
from rayhelm.errors import Fix, FleetError, MissingError, Problem, attempt, collect
from rayhelm.facts.huggingface import read_config, read_keys
from rayhelm.facts.model import Attention, BuiltMemory, BuiltRank, Checkpoint, StatedMemory
from rayhelm.facts.stated import UNCHECKED
from rayhelm.facts.tasks import Task

if TYPE_CHECKING:
    from rayhelm.run.local.engine_classes import BuiltModel

__all__ = ["BuiltRecord", "build_record"]

_MOST = {"layers": 1_000, "": 1 << 31}
"""Largest number in a config.json: of its keys for layers, and of the others. More would build for hours."""
_DEPTH = 20
_INTERMEDIATE = 3.5
"""Width of the MLP of an unknown model by its hidden size, for its working memory: that of Llama 3 8B."""


@dataclass(frozen=True)
class BuiltRecord:
    """The data file of a model, and what was left out."""

    record: Checkpoint
    is_read: bool
    """rayhelm reads the config.json itself too: only the weights are those of vLLM."""
    refused: Mapping[int, str]
    """Why vLLM does not build a tensor parallel size."""


def build_record(path: Path, sizes: Sequence[int], *, name: str | None, context: int | None, task: Task) -> BuiltRecord:
    """Build the model of a config.json for each tensor parallel size. `context`: longest prompt and answer, tokens;
    None for the model's own. Raises FleetError, and MissingError without vLLM."""
    if find_spec("vllm") is None:
        raise MissingError("vLLM is not installed; `rayhelm catalog add` builds the model with it", how_to_get_ray())
    path, keys = read_keys(path)
    _check_numbers(keys, str(path))
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # no warnings about the GPUs of this computer
    os.environ["HF_HUB_OFFLINE"] = "1"  # the config.json is all that is read
    keys = _remove_code(keys, str(path))
    built: dict[int, BuiltModel] = {}
    refused: dict[int, str] = {}
    for tp in sizes:
        model, problems = collect(partial(_build, keys, tp, context))
        if model:
            built[tp] = model
        else:
            refused[tp] = problems[0].message
    if not built:
        reasons = "; ".join(f"tensor parallel size {tp}: {why}" for tp, why in refused.items())
        fix = Fix.advice("write `memory: {weights: …, kvPerToken: …}` of the model in the fleet file instead")
        raise FleetError(
            Problem(f"vLLM {_read_version()} does not build this model. {reasons}", file=str(path), fix=fix)
        )
    own = _read(path)
    first = next(iter(built.values()))
    memory = BuiltMemory(
        engine=_read_version(),
        context=first.shape.max_context,
        ranks=tuple(
            BuiltRank(tensor_parallel_size=tp, weights=each.weights, kv_per_token=each.kv_per_token)
            for tp, each in built.items()
        ),
    )
    source = f"rayhelm catalog add, vLLM {_read_version()}, {path.name}"
    if own:
        record = own.model_copy(update={"id": name or own.id, "built": memory, "source": source})
    else:
        record = _describe(name or path.resolve().parent.name, first, memory, min(built), task, source)
    return BuiltRecord(record, own is not None, refused)


def _read_version() -> str:
    import vllm

    return str(vllm.__version__).partition("+")[0]


def _read(path: Path) -> Checkpoint | None:
    """Return the record of rayhelm's own reader; None if it does not know the architecture."""
    return attempt(lambda: read_config(path))


def _build(keys: dict[str, Any], tp: int, context: int | None) -> "BuiltModel":
    """Build one size. vLLM and transformers raise anything for a bad file, so all of it is a problem of the file."""
    from rayhelm.run.local.engine_classes import build

    try:
        return build(keys, tp, context)
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        # pydantic names the field in its second line, and what is wrong with it in the third.
        text = " ".join(lines[:3]) if type(error).__name__ == "ValidationError" else next(iter(lines), "")
        raise FleetError(Problem(f"{type(error).__name__}: {text[:300]}")) from None


def _describe(name: str, built: "BuiltModel", memory: BuiltMemory, tp: int, task: Task, source: str) -> Checkpoint:
    """Return the record of a model that only vLLM reads: its shape, and the memory of one GPU as stated."""
    shape, rank = built.shape, memory.find(tp)
    assert rank is not None
    whole = tp * rank.weights
    kv_heads = max(1, shape.kv_heads)
    return Checkpoint(
        id=name,
        tasks=(task,),
        architecture=shape.architecture or UNCHECKED,
        layers=shape.layers,
        hidden=shape.hidden,
        intermediate=round(_INTERMEDIATE * shape.hidden),
        vocab=shape.vocab,
        max_context=shape.max_context,
        attention=Attention(heads=shape.heads, kv_heads=kv_heads, head_dim=shape.head_dim),
        stated=StatedMemory(weights=whole, kv_per_token=rank.kv_per_token * min(tp, kv_heads)),
        built=memory,
        source=source,
    )


def _remove_code(keys: dict[str, Any], file: str) -> dict[str, Any]:
    """Return the keys without the names of code in the repository of the model. Refuse a model that needs this code."""
    if "auto_map" not in keys:
        return keys
    from vllm.model_executor.models import ModelRegistry

    named = keys.get("architectures")
    named = [str(each) for each in named] if isinstance(named, list) else []
    if not set(named) & set(ModelRegistry.get_supported_archs()):
        message = (
            f"`auto_map` names code in the repository of the model, and vLLM {_read_version()} has no class"
            f" {', '.join(named) or 'for it'}. rayhelm does not run this code"
        )
        fix = Fix.advice("write `memory: {weights: …, kvPerToken: …}` of the model in the fleet file instead")
        raise FleetError(Problem(message, file=file, fix=fix))
    return {key: value for key, value in keys.items() if key != "auto_map"}


def _check_numbers(node: Any, file: str, where: str = "", depth: int = 0) -> None:
    """Refuse numbers that no model has. vLLM would build a model of them, layer by layer."""
    if depth > _DEPTH:
        raise FleetError(Problem("is nested too deeply for the config.json of a model", file=file, fix=_ADVICE))
    for key, value in node.items() if isinstance(node, Mapping) else enumerate(node):
        path = f"{where}.{key}".lstrip(".")
        if isinstance(value, Mapping | list):
            _check_numbers(value, file, path, depth + 1)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            is_count = "layer" in str(key) or "depth" in str(key)
            most = _MOST["layers"] if is_count else _MOST[""]
            if not -most <= value <= most:
                raise FleetError(Problem(f"is {value:.3g}, and the limit is {most}", file=file, path=path, fix=_ADVICE))


_ADVICE = Fix.advice("give the config.json as the publisher wrote it")
