"""Translates the errors of pydantic into problems of the fleet file, each with its fix."""

import re
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rayhelm.errors import Fix, Problem
from rayhelm.spec.base import Refusal, short
from rayhelm.spec.document import Document
from rayhelm.spec.names import MAX_SERVICE_NAME
from rayhelm.spec.nearest import did_you_mean
from rayhelm.spec.renamed import describe_renamed, new_key
from rayhelm.spec.sample import as_yaml, sample
from rayhelm.spec.walk import Step, field_at, fields, model_at

__all__ = ["translate_errors"]


def translate_errors(error: ValidationError, document: Document, model: type[BaseModel]) -> list[Problem]:
    """One problem per key: a union reports an error for each member, and only the one for the type of the input is
    kept."""
    details = [(_path(detail, document.data), detail) for detail in error.errors(include_url=False)]
    details.sort(key=lambda item: item[1]["type"].endswith("_type"))
    problems: dict[tuple[Step, ...], Problem] = {}
    entered = {path[:end] for path, _ in details for end in range(len(path))}
    for path, detail in details:
        if path in entered and detail["type"].endswith("_type"):
            continue
        problems.setdefault(path, _problem(detail, path, document, model))
    return sorted(problems.values(), key=lambda problem: problem.line or 0)


def _path(detail: ErrorDetails, data: Any) -> tuple[Step, ...]:
    """Location without the names of union members and `[key]` markers, which are not in the file."""
    path: list[Step] = []
    for step in detail["loc"]:
        if (isinstance(data, dict) and step in data) or (isinstance(data, list) and step in range(len(data))):
            data = data[step]  # type: ignore[index]  # narrowed by the line above, which mypy cannot follow
            path.append(step)
    return (*path, detail["loc"][-1]) if detail["type"] == "missing" else tuple(path)


def _problem(detail: ErrorDetails, path: tuple[Step, ...], document: Document, model: type[BaseModel]) -> Problem:
    kind, context = detail["type"], detail.get("ctx", {})
    value = detail.get("input")
    key = str(path[-1]) if path else ""
    if kind == "extra_forbidden":
        if new := new_key(path):
            return document.problem(path, describe_renamed(key, new), Fix(f"../{new}", value))
        parent = model_at(model, path[:-1])
        known = list(fields(parent)) if parent else []
        fix = did_you_mean(key, known) or Fix.removal("", "`rayhelm explain` lists the keys")
        return document.problem(path, f"unknown key `{short(key)}`", fix)
    if kind == "missing":
        return document.problem(path, f"`{key}` is missing", _fix(model, path))
    if value is None and kind != "value_error":
        return document.problem(path, f"`{key}` has no value", f"{_fix(model, path)}\nor remove the key")
    if kind == "literal_error":
        expected = str(context["expected"])
        words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
        fix = did_you_mean(short(value), words)
        if isinstance(value, float) and str(value) in words:
            fix = f'quote it: "{value}"; YAML reads it as a number'
        return document.problem(path, f"`{short(value)}` is not one of {expected}", fix)
    if kind == "string_pattern_mismatch":
        return document.problem(path, *_pattern(key, value))
    if kind == "value_error":
        refusal = context["error"]
        return document.problem(path, str(refusal), refusal.fix if isinstance(refusal, Refusal) else "")
    if kind == "string_type" and isinstance(value, (bool, int, float)):
        fix = f'{key}: "{short(value)}"   # in quotes'
        return document.problem(path, f"YAML does not read `{short(value)}` as text", fix)
    if isinstance(value, (dict, list)) and kind.endswith("_type"):
        what = "a list" if isinstance(value, list) else "a mapping"
        return document.problem(path, f"{_plain_message(detail)}, not {what}", _fix(model, path))
    return document.problem(path, f"{_plain_message(detail)}, not `{short(value)}`", _fix(model, path))


def _pattern(key: str, value: object) -> tuple[str, str]:
    if key in _OTHER_FORMS:
        return f"`{short(value)}` {_OTHER_FORMS[key][0]}", _OTHER_FORMS[key][1]
    fix = "# write lowercase letters, digits and `-`, with a letter first: it becomes a Kubernetes name"
    if isinstance(value, str) and (better := _as_name(value)):
        fix += f"; for example `{better}`"
    return f"`{short(value)}` cannot be a name", fix


_OTHER_FORMS = {
    "revision": (
        "is not a commit: branches and tags move",
        "# write the 40 hexadecimal digits of the commit, from the history page of the hub",
    ),
    "digest": ("is not a digest", "# write sha256: and 64 hexadecimal digits, from the registry"),
    "key": ("is not a key of a Secret", "key: token"),
    "host": ("is not a host name", "host: ai.example.com"),
    "storageClass": ("cannot be the name of a storage class", "storageClass: shared-nvme   # kubectl get storageclass"),
}


def _as_name(text: str) -> str:
    """ASCII only: Kubernetes allows no other letters in names."""
    return re.sub("[^a-z0-9]+", "-", text.lower()).lstrip("-0123456789")[:MAX_SERVICE_NAME].rstrip("-")


def _plain_message(detail: ErrorDetails) -> str:
    """What the value must be, by pydantic's type of error; pydantic's own sentence for a type that is not here."""
    form = _MESSAGES.get(detail["type"])
    if form is None:
        return detail["msg"]
    return form.format(**detail.get("ctx", {}))


_MESSAGES = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "mapping_type"), "must be a mapping"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type"), "must be a list"),
    "string_type": "must be text",
    "finite_number": "must be a finite number",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be greater than or equal to {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be less than or equal to {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
}


def _fix(model: type[BaseModel], path: tuple[Step, ...]) -> str:
    """The key with an example and its meaning, as YAML."""
    found = field_at(model, path)
    if found is None:
        return ""
    key, info = found
    meaning = f"   # {info.description.splitlines()[0]}" if info.description else ""
    return as_yaml(key, sample(info)) + meaning
