"""Translates the errors of pydantic into problems of the fleet file, each with its fix."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.base import Refusal, UnitMissing, short
from rayhelm.fleet.document import Document
from rayhelm.fleet.names import MAX_SERVICE_NAME, MODEL_PATTERN
from rayhelm.fleet.near_value import convert_rate, find_near_value, read_number
from rayhelm.fleet.nearest import did_you_mean, list_known, nearest
from rayhelm.fleet.other_words import find_value, list_keys, name_rate
from rayhelm.fleet.sample import sample
from rayhelm.fleet.walk import Step, field_at, fields, has_step, model_at, type_at

__all__ = ["describe_type", "translate_errors"]

_ALIKE = 0.75
"""Similarity of a mistyped name to the right one."""
_MANY = 24
"""Choices or keys above which a message does not list them."""
_SWITCHES = ("yes", "no", "on", "off", "true", "false")
"""Words that are like no other word."""


def translate_errors(error: ValidationError, document: Document, model: type[BaseModel]) -> list[Problem]:
    """One problem per key: a union reports an error for each member, and only the one for the type of the input is
    kept."""
    details = [(_path(detail, document.data), detail) for detail in error.errors(include_url=False)]
    details.sort(key=lambda item: item[1]["type"].endswith("_type"))
    problems: dict[tuple[Step, ...], Problem] = {}
    entered = {path[:end] for path, _ in details for end in range(len(path))}
    for path, detail in details:
        # Pydantic counts only the items that are right: a list with a wrong one can be long enough.
        if path in entered and (detail["type"].endswith("_type") or detail["type"] == "too_short"):
            continue
        problems.setdefault(path, _problem(detail, path, document, model))
    # A missing key that the fix of a mistyped one writes is no problem of its own.
    missing = {path for path, detail in details if detail["type"] == "missing"}
    fixes = [problem.fix for problem in problems.values() if isinstance(problem.fix, Fix)]
    written = {fix.path for fix in fixes if fix.replaces}
    kept = [problem for path, problem in problems.items() if path not in missing or problem.path not in written]
    return sorted(kept, key=lambda problem: problem.line or 0)


def _path(detail: ErrorDetails, data: Any) -> tuple[Step, ...]:
    """Location without the names of union members and `[key]` markers, which are not in the file."""
    path: list[Step] = []
    for step in detail["loc"]:
        if has_step(data, step):
            data = data[step]
            path.append(step)
    return (*path, detail["loc"][-1]) if detail["type"] == "missing" else tuple(path)


def _problem(detail: ErrorDetails, path: tuple[Step, ...], document: Document, model: type[BaseModel]) -> Problem:
    message, fix, *others = _message_and_fixes(detail, path, document, model)
    if detail["loc"] and detail["loc"][-1] == "[key]":
        fix = _rename(fix, path, document)
    return document.problem(path, message, fix, alternatives=others)


def _message_and_fixes(
    detail: ErrorDetails, path: tuple[Step, ...], document: Document, model: type[BaseModel]
) -> tuple[str, Fix, *tuple[Fix, ...]]:
    """The message, the fix, and other fixes."""
    kind, value = detail["type"], detail.get("input")
    key = str(path[-1]) if path else ""
    if kind == "extra_forbidden":
        return _unknown_key(key, path, document, model)
    if kind == "missing":
        return f"`{key}` is missing", _sample(model, path)
    if value is None and kind != "value_error":
        found = field_at(model, path)
        removal = (Fix.removal(),) if found and not found[1].is_required() else ()
        return f"`{key}` has no value", _sample(model, path), *removal
    if kind == "literal_error":
        return _not_a_choice(value, str(detail.get("ctx", {})["expected"]))
    if kind == "string_pattern_mismatch":
        if detail.get("ctx", {})["pattern"] == MODEL_PATTERN:
            return _fix_model_name(str(value))
        return _pattern(key, value, _sample(model, path), is_key=detail["loc"][-1] == "[key]")
    if kind == "value_error":
        refusal = detail.get("ctx", {})["error"]
        if isinstance(refusal, UnitMissing) and isinstance(example := _sample(model, path).value, str):
            return str(refusal), refusal.choose(example)
        return str(refusal), refusal.fix if isinstance(refusal, Refusal) else _sample(model, path)
    if kind == "string_type" and isinstance(value, (bool, int, float)):
        return f"YAML does not read `{short(value)}` as a string", _quoted(value, path, model)
    near = find_near_value(key, value, detail.get("ctx", {}), lambda each: _accepts(model, path, each))
    return f"{describe_type(detail)}, not {_name_value(value, kind)}", near or _example(model, path)


def _name_value(value: object, kind: str) -> str:
    if isinstance(value, (dict, list)) and kind.endswith("_type"):
        return "a list" if isinstance(value, list) else "a map"
    is_quoted = isinstance(value, str) and kind in ("int_type", "float_type") and read_number(value) is not None
    return f"the string `{short(value)}`" if is_quoted else f"`{short(value)}`"


def _unknown_key(
    key: str, path: tuple[Step, ...], document: Document, model: type[BaseModel]
) -> tuple[str, Fix, *tuple[Fix, ...]]:
    """A key that was mistyped or made up. A near key that the file has already is not proposed."""
    value = document.value(path)
    parent = model_at(model, path[:-1])
    if parted := _join_parted_number(key, path, document):
        return f"unknown key `{key}`: in {{…}} a comma ends the value before it", parted
    if place := _find_meant(key, path, document, model):
        fix = convert_rate(name_rate(key), place, value) or Fix(f"../{place}", value, replaces="")
        return f"{getattr(parent, 'UNKNOWN', 'unknown key')} `{short(key)}`; did you mean `{place}`?", fix
    known = list(fields(parent)) if parent else []
    # Of hundreds of engine arguments many are a little like a word.
    cutoff = 0.5 if len(known) <= _MANY else _ALIKE
    near = nearest(key, [name for name in known if name not in document.value(path[:-1])], cutoff=cutoff)
    hint = did_you_mean(key, near if len(known) > _MANY else known)
    message = f"{getattr(parent, 'UNKNOWN', 'unknown key')} `{short(key)}`" + (f"; {hint}" if hint else "")
    if not near:
        elsewhere = " or ".join(_list_sections(key, model))
        why = f"it is a key of {elsewhere}" if elsewhere else "`rayhelm explain` lists the keys"
        return message, Fix.removal("", "" if hint else why)
    # A name that is only a little alike, with a value that it does not take, is another key.
    fitting = [name for name in near if _accepts(model, (*path[:-1], name), value)] or nearest(key, near, cutoff=_ALIKE)
    if not fitting:
        return message, Fix.removal()
    rates = [convert_rate(key, name, value) for name in fitting]
    first, *rest = (rate or Fix(f"../{name}", value, replaces="") for rate, name in zip(rates, fitting, strict=True))
    return message, first, *rest


def _list_sections(key: str, model: type[BaseModel]) -> Iterator[str]:
    """Name the maps of the fleet file whose entries have the key."""
    for section in fields(model):
        entry = model_at(model, (section, "NAME"))
        if entry and key in fields(entry):
            yield f"`{section}.NAME`"


def _find_meant(key: str, path: tuple[Step, ...], document: Document, model: type[BaseModel]) -> str | None:
    """Return where the key is in the fleet file, from the record that has it; None if it is no other word of one."""
    places = {place: (*path[:-1], *place.split(".")) for place in list_keys(key)}
    free = {place: at for place, at in places.items() if _is_free(model, at, document)}
    fitting = (place for place, at in free.items() if _accepts(model, at, document.value(path)))
    return next(fitting, next(iter(free), None))


def _is_free(model: type[BaseModel], path: tuple[Step, ...], document: Document) -> bool:
    """Return whether the types know the key and the file does not have it."""
    if not field_at(model, path):
        return False
    try:
        document.value(path)
    except (KeyError, IndexError):
        return True
    except TypeError:  # a key above has a value without keys: `replicas: 2`
        return False
    return False


def _join_parted_number(key: str, path: tuple[Step, ...], document: Document) -> Fix | None:
    """Return the fix of `{nodes: 1,000}` or `{requestsPerSecond: 1,5}`, which YAML reads as two keys."""
    beside: dict[str, Any] = document.value(path[:-1])
    keys = list(beside)
    before = keys[keys.index(path[-1]) - 1] if path[-1] in keys[1:] else None
    whole = beside.get(before) if before else None
    if not key.isdecimal() or beside[key] is not None or isinstance(whole, bool) or not isinstance(whole, int):
        return None
    number = int(f"{whole}{key}") if len(key) == 3 else float(f"{whole}.{key}")
    return Fix(f"../{before}", number, "a number without a comma", replaces="")


def _not_a_choice(value: object, expected: str) -> tuple[str, Fix, *tuple[Fix, ...]]:
    words = expected.replace(" or ", ", ").split(", ")
    choices = [word.strip("'") for word in words]
    message = f"`{short(value)}` is not one of {expected if len(words) <= _MANY else f'{len(words)} values'}"
    if isinstance(value, float) and str(value) in choices:
        return message, Fix("", str(value), "in quotes: YAML reads it as a number without them")
    if isinstance(value, (int, float)) and all(word.isdecimal() for word in words):
        return message, Fix("", min(map(int, words), key=lambda number: abs(number - value)))
    if isinstance(value, list) and value and value[0] in choices:
        return message, Fix("", value[0], f"one of {len(value)}: the key takes one" if value[1:] else "no list")
    if (meant := find_value(short(value))) in choices:
        return message, Fix("", meant)
    near: Sequence[str] = nearest(short(value), choices)
    if not near or str(value).lower() in _SWITCHES:
        return message, Fix("", choices[0], f"an example; {list_known(choices)}".removesuffix("; "))
    first, *rest = (Fix("", choice) for choice in near)
    return message, first, *rest


def _quoted(value: bool | int | float, path: tuple[Step, ...], model: type[BaseModel]) -> Fix:
    """The value as text, if the field takes that text."""
    if field_at(model, path) and not _accepts(model, path, short(value)):
        return _sample(model, path)
    return Fix("", short(value), "in quotes")


def _accepts(model: type[BaseModel], path: tuple[Step, ...], value: object) -> bool:
    """Return whether the types know the key and allow the value there."""
    annotation = type_at(model, path)
    if annotation is None:
        return False
    try:
        TypeAdapter(annotation).validate_python(value)
    except ValidationError:
        return False
    return True


def _rename(fix: Fix, path: tuple[Step, ...], document: Document) -> Fix:
    """A fix whose value is the new name of the last key of `path`."""
    others = document.value(path[:-1])
    name = _make_unique(str(fix.value), others)
    if re.fullmatch("[A-Za-z][-A-Za-z0-9_]*", name):
        return Fix(f"../{name}", others[path[-1]], fix.why, replaces="")
    # The path of a key with dots or slashes would be ambiguous.
    return Fix("..", {name if key == path[-1] else key: value for key, value in others.items()}, fix.why)


def _make_unique(name: str, taken: Any) -> str:
    """The name, with a number behind it if it is taken."""
    if name not in taken:
        return name
    return next(f"{name}-{number}" for number in range(2, len(taken) + 3) if f"{name}-{number}" not in taken)


def _pattern(key: str, value: object, example: Fix, *, is_key: bool) -> tuple[str, Fix, *tuple[Fix, ...]]:
    if key in _OTHER_FORMS and not is_key:
        what, fix = _OTHER_FORMS[key]
        return f"`{short(value)}` {what}", fix or example
    if not is_key and example.value is not None and _as_name(str(example.value)) != example.value:
        return f"`{short(value)}` is not of the form of `{example.value}`", example
    name = _as_name(value) if isinstance(value, str) else ""
    why = "lowercase letters, digits and `-`, with a letter first: it becomes a Kubernetes name"
    return f"`{short(value)}` cannot be a name", Fix("", name or "my-name", why)


def _fix_model_name(name: str) -> tuple[str, Fix]:
    parts = (part.strip("-._") for part in re.sub("[^A-Za-z0-9._/-]+", "-", name).split("/"))
    why = "letters, digits, `.`, `-` and `_`, in parts with `/` between them, as clients send it"
    return f"`{short(name)}` cannot be a name of a model", Fix(
        "", "/".join(part for part in parts if part) or "my-name", why
    )


_OTHER_FORMS: dict[str, tuple[str, Fix | None]] = {
    "revision": (
        "is not a commit: branches and tags move",
        Fix(
            "../unpinnedReason",
            "the weights may change: this is a trial",
            "or `revision`: 40 hexadecimal digits, from the history page of the hub; for buckets 64, from"
            " `sha256sum SHA256SUMS`",
            replaces="",
        ),
    ),
    "digest": ("is not a digest", Fix.removal("", "or write sha256: and 64 hexadecimal digits, from the registry")),
    "key": ("is not a key of a Secret", Fix("", "token")),
    "host": ("is not a host name", None),
    "storageClass": (
        "cannot be the name of a storage class",
        Fix("", "shared-nvme", "kubectl get storageclass lists them"),
    ),
}


def _as_name(text: str) -> str:
    """ASCII only: Kubernetes allows no other letters in names."""
    return re.sub("[^a-z0-9]+", "-", text.lower()).lstrip("-0123456789")[:MAX_SERVICE_NAME].rstrip("-")


def describe_type(detail: ErrorDetails) -> str:
    """Describe the allowed value by pydantic's type of error; for other types, return pydantic's own message."""
    form = _MESSAGES.get(detail["type"])
    if form is None:
        return detail["msg"]
    return form.format(**detail.get("ctx", {}))


_MESSAGES = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "mapping_type"), "must be a map"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type"), "must be a list"),
    "string_type": "must be a string",
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


def _sample(model: type[BaseModel], path: tuple[Step, ...]) -> Fix:
    """The key with an example and its meaning; its removal if the types do not know it."""
    found = field_at(model, path)
    if found is None:
        return Fix.removal()
    key, info = found
    value = sample(info)
    if key != path[-1] and isinstance(value, (dict, list)):  # the value of a map, or the item of a list
        values = list(value.values()) if isinstance(value, dict) else value
        value = values[0] if values else {}
    return Fix("", value, _first_sentence(info.description or ""))


def _example(model: type[BaseModel], path: tuple[Step, ...]) -> Fix:
    """The sample, marked as one: it replaces a value whose meaning it does not have."""
    fix = _sample(model, path)
    return fix if fix.is_removal else replace(fix, why="; ".join(filter(None, ("an example", fix.why))))


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0]
