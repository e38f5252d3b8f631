"""The problem of a model that neither the catalog nor the hub has, and what may replace it."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from rayhelm.errors import Fix, Problem
from rayhelm.facts import load_catalog
from rayhelm.facts.tasks import get_task
from rayhelm.fleet.models import ModelSpec
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.sources import is_hub_id

__all__ = ["locate_model", "read_numbers"]

_NUMBER = re.compile(r"\d+(?:\.\d+)?[a-z]?|awq|gptq|gguf|nvfp|mxfp|fp(?=\d)|bnb")
_TUNED = re.compile(r"[-_.](?:instruct|it|chat)(?![a-z])")
"""Part of a name that says that the model follows instructions."""

_ALIKE = 0.6
"""Similarity of a mistyped family to the right one."""


def locate_model(problem: Problem, path: tuple[str | int, ...], spec: ModelSpec) -> Problem:
    """A problem of a name is one of the fleet file; one inside a config.json stays there.

    A fix keeps family, version, size and quantization of the model: a plan of another one would buy other GPUs. A base
    model has the shape of one that follows instructions, and never replaces it."""
    if problem.path:
        return problem
    wanted = spec.architecture or spec.source
    message = f"{problem.file}: {problem.message}" if problem.file else problem.message
    if problem.file and path[-1] == "source":
        message += ". If it is a path in the container, `architecture` says what is there"
    fixes = [fix for fix in (problem.fix, *problem.alternatives) if isinstance(fix, Fix) and not fix.is_advice]
    near = _find_usable(
        [str(fix.value) for fix in fixes if fix.value is not None and not fix.why.startswith("an example")], spec.task
    )
    same = [each for each in near if read_numbers(each) == read_numbers(wanted) and _is_of_family(each, wanted)]
    if others := [each for each in near if each not in same]:
        message += f". Similar names, of other models: {', '.join(others)}"
    is_source = path[-1] == "source"
    kept = [Fix(value=each) for each in same if not is_source or _is_tuned(each) >= _is_tuned(wanted)]
    kept += [fix for fix in fixes if fix.value is None]
    if same and is_source:
        kept.append(Fix("../architecture", same[0], "a model of the same shape"))
    first, *rest = [*kept, _get_config(wanted)]
    return problem_at(path, message, first, alternatives=rest)


def _get_config(wanted: str) -> Fix:
    """The way that is right for every model: its own config.json."""
    why = "then `architecture: FOLDER/config.json`, with the folder beside the fleet file"
    if is_hub_id(wanted):
        return Fix(command=f"hf download {wanted} config.json --local-dir FOLDER", why=why)
    same = "a model of the same shape as `architecture`; or copy its config.json"
    return Fix(command="rayhelm catalog models", why=f"{same}, {why}")


def _find_usable(names: Sequence[str], task: str) -> list[str]:
    """Return the ids of those models of the catalog that the task can use."""
    facts = load_catalog()
    found = {facts.model(name).id: facts.model(name) for name in names}
    return [id for id, model in found.items() if task in model.tasks or get_task(task).is_any_model_allowed]


def _is_of_family(name: str, wanted: str) -> bool:
    """Return whether both names begin with the same word, as far as it is spelled right: `llama3:8b` is no Qwen3-8B."""
    first, second = (
        re.sub("[^a-z]", "", re.split(r"\d", text.rpartition("/")[2].lower().removeprefix("meta-"), maxsplit=1)[0])
        for text in (name, wanted)
    )
    return SequenceMatcher(None, first, second).ratio() >= _ALIKE


def _is_tuned(name: str) -> bool:
    """Return whether a name says that the model follows instructions: `-Instruct`, `-it`, `-chat`."""
    return bool(_TUNED.search(name.rpartition("/")[2].lower()))


def read_numbers(name: str) -> list[str]:
    """Return version, sizes and quantization in a name: `3.1`, `70b`, `awq`."""
    return sorted(set(_NUMBER.findall(name.rpartition("/")[2].lower())))
