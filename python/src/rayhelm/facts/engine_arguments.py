"""Engine arguments of vLLM: names and types that ci/engine_arguments.py read from vLLM, and who sets which.

`data/engine_arguments/vllm-<version>.json` is JSON Schema. The fleet file and the schema of chart ray-service use it.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rayhelm.facts.closed import Closed
from rayhelm.facts.versions import versions

__all__ = [
    "OwnedArgument",
    "RemovedArgument",
    "load_argument_schema",
    "load_owned_arguments",
    "load_removed_arguments",
    "load_uncounted_arguments",
]

_FOLDER = Path(__file__).parent.parent / "data" / "engine_arguments"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class OwnedArgument(Closed):
    """An argument that something else sets."""

    why: str
    """What sets it, or why it is refused."""
    fleet: str = ""
    """Key of the model in the fleet file that sets it, dotted."""
    harmless: int | bool | None = None
    """Value that is accepted, because it changes nothing."""


class RemovedArgument(Closed):
    """An argument of earlier vLLM."""

    why: str
    """What became of it."""
    use: str = ""
    """Argument that replaces it."""


@cache
def load_argument_schema() -> dict[str, Any]:
    """Return the arguments of the pinned vLLM as a JSON Schema of `engine_kwargs`."""
    schema: dict[str, Any] = json.loads((_FOLDER / f"vllm-{versions().vllm}.json").read_text(encoding="utf-8"))
    return schema


@cache
def load_owned_arguments() -> dict[str, OwnedArgument]:
    """Return the arguments that something else sets, by name."""
    return {name: OwnedArgument.model_validate(row) for name, row in _read("owned.yaml").items()}


@cache
def load_removed_arguments() -> dict[str, RemovedArgument]:
    """Return arguments of earlier vLLM that the pinned one does not have, by name."""
    return {name: RemovedArgument.model_validate(row) for name, row in _read("removed.yaml").items()}


@cache
def load_uncounted_arguments() -> dict[str, str]:
    """Return what the plan does not count, by the argument that causes it."""
    return dict(_read("uncounted.yaml"))


def _read(file: str) -> dict[str, Any]:
    rows: dict[str, Any] = yaml.load((_FOLDER / file).read_text(encoding="utf-8"), Loader=_LOADER)
    return rows
