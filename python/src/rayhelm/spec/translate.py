"""pydantic's errors in the words of the fleet file, each with its mend."""

from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rayhelm.errors import Problem
from rayhelm.spec.document import Document
from rayhelm.spec.nearest import did_you_mean
from rayhelm.spec.walk import Step, field_of, fields, model_at

__all__ = ["problems_of"]


def problems_of(error: ValidationError, document: Document, model: type[BaseModel]) -> list[Problem]:
    """One problem per place: a union reports each of its members, and only the first that fits the input is told."""
    problems: dict[tuple[Step, ...], Problem] = {}
    for detail in error.errors(include_url=False, include_context=True):
        path = _path(detail["loc"], document.data)
        problems.setdefault(path, _problem(detail, path, document, model))
    return sorted(problems.values(), key=lambda problem: problem.line or 0)


def _path(loc: tuple[Step, ...], data: Any) -> tuple[Step, ...]:
    """pydantic's location without the names of union members and of `[key]` markers, which are in no file."""
    path: list[Step] = []
    for index, step in enumerate(loc):
        if (isinstance(data, dict) and step in data) or (isinstance(data, list) and step in range(len(data))):
            data = data[step]  # type: ignore[index]  # narrowed by the line above, which mypy cannot follow
            path.append(step)
        elif index == len(loc) - 1 and isinstance(data, dict) and step != "[key]":
            path.append(step)
    return tuple(path)


def _problem(detail: ErrorDetails, path: tuple[Step, ...], document: Document, model: type[BaseModel]) -> Problem:
    kind, context = detail["type"], detail.get("ctx", {})
    value = detail.get("input")
    key = str(path[-1]) if path else ""
    if kind == "extra_forbidden":
        parent = model_at(model, path[:-1])
        known = list(fields(parent)) if parent else []
        return document.problem(path, f"unknown key `{key}`", did_you_mean(key, known))
    if kind == "missing":
        return document.problem(path, f"`{key}` is missing", _example(model, path))
    if value is None and kind != "value_error":
        return document.problem(path, f"`{key}` has no value", "write a value, or remove the key")
    if kind == "literal_error":
        expected = str(context["expected"])
        mend = did_you_mean(str(value), [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")])
        if isinstance(value, float):
            mend = f'quote it: "{value}"; YAML reads it as a number'
        return document.problem(path, f"`{value}` is not one of {expected}", mend)
    if kind == "string_pattern_mismatch":
        return document.problem(path, *_pattern(key, value, detail["loc"]))
    if kind == "value_error":
        return document.problem(path, str(context["error"]))
    return document.problem(path, f"{_spoken(detail)}, not `{_short(value)}`", _example(model, path))


def _pattern(key: str, value: object, loc: tuple[Step, ...]) -> tuple[str, str]:
    if key == "revision":
        return (
            f"`{value}` is not a commit: branches and tags move",
            "write the 40 hex digits of the commit, as the hub's history page shows them",
        )
    if key == "digest":
        return f"`{value}` is not a digest", "write sha256: and 64 hex digits, as the registry shows them"
    mend = "lower-case letters, digits and `-`, beginning with a letter: it becomes a Kubernetes name"
    if isinstance(value, str) and (better := _as_name(value)):
        mend += f"; for example `{better}`"
    return f"`{value}` cannot be a name", mend


def _as_name(text: str) -> str:
    cleaned = "".join(letter if letter.isalnum() else "-" for letter in text.lower()).strip("-")
    return cleaned if cleaned[:1].isalpha() else ""


def _spoken(detail: ErrorDetails) -> str:
    message = detail["msg"].replace("Input should be", "must be").replace("a valid dictionary", "a mapping")
    return message.replace("a valid integer", "a whole number").replace("a valid ", "a ").split(", got")[0]


def _short(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) < 60 else text[:57] + "…"


def _example(model: type[BaseModel], path: tuple[Step, ...]) -> str:
    """The key with an example and its meaning, as YAML."""
    info = field_of(model, path)
    if info is None:
        return ""
    meaning = f"  # {info.description.splitlines()[0]}" if info.description else ""
    if info.examples:
        return f"{path[-1]}: {info.examples[0]}{meaning}"
    return f"{path[-1]}:{meaning}" if meaning else ""
