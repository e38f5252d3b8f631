"""The result of a Job that sends golden prompts to the new version: how many passed."""

import json
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator, Field, ValidationError

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts.closed import Closed
from rayhelm.fleet.document import read_text
from rayhelm.live.promotion.subject import Subject

__all__ = ["QualityResult", "read_quality"]

_EXAMPLE = '{"passed": 48, "failed": 2}'


def _refuse_switch(value: Any) -> Any:
    """A result `true` is none of a number of prompts, and would count as one."""
    if isinstance(value, bool):
        raise ValueError("must be a number of prompts")
    return value


Prompts = Annotated[int, BeforeValidator(_refuse_switch), Field(ge=0)]


class QualityResult(Closed):
    """Golden prompts of a new version. More keys are refused, so that a misspelled one is not without effect."""

    passed: Prompts
    failed: Prompts
    model: str = ""
    """Model of the fleet file that was asked."""
    revision: str = ""
    """Revision of its weights."""

    @property
    def total(self) -> int:
        return self.passed + self.failed


def read_quality(path: Path, subject: Subject) -> QualityResult:
    """Read a JSON file, or a ConfigMap of kubectl with one key that has this JSON, or a key for each field. Raises
    FleetError, also for a result of another model or revision."""
    if path.is_dir() or not path.exists():
        raise _refuse(path, "is not a file")
    text = read_text(path)
    try:
        found = _parse(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise _refuse(path, "is not JSON") from None
    if not isinstance(found, dict):
        raise _refuse(path, "is not a JSON object")
    try:
        result = QualityResult.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise _refuse(path, f"{f'`{key}`: ' if key else ''}{first['msg'].lower()}") from None
    if not result.total:
        raise _refuse(path, "no golden prompt was sent")
    for key, own, other in (
        ("model", subject.model, result.model),
        ("revision", subject.revision, result.revision),
    ):
        if other and other != own:
            known = f"`{own}`" if own else "none in the fleet file"
            raise _refuse(path, f"is the result of {key} `{other}`, and the {key} of `{subject.model}` is {known}", key)
    return result


def _parse(text: str) -> Any:
    found = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if not isinstance(found, dict) or found.get("kind") != "ConfigMap":
        return found
    data = found.get("data")
    inner = next(iter(data.values())) if isinstance(data, dict) and len(data) == 1 else None
    return json.loads(inner) if isinstance(inner, str) and inner.lstrip().startswith("{") else data


def _refuse(path: Path, message: str, stale: str = "") -> FleetError:
    again = f"run the Job again with this {stale}" if stale else f"write it like {_EXAMPLE}"
    return FleetError(Problem(message, file=str(path), fix=Fix.advice(again)))
