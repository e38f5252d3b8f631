"""Follows the first fix of each problem of a refused fleet file, as a person who pastes it and reads no further."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.document import parse_document
from shared.apply_fix import apply_fix, find_problems

__all__ = ["Outcome", "follow_first_fixes"]

MOST_ROUNDS = 3
_QUANTITY = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z/%]*)")
_UNITS = {"sec": "s", "gi": "gib", "kb": "kb", "gbps": "gbit/s", "gb/s": "gbit/s"}
_DIGEST = re.compile(r"(:[^@]*)?@sha256:.*|:[^@/]*$")
_QUANTIZED = re.compile(r"[-_.](fp8|awq|gptq|int[48]|w\d+a\d+|nvfp4|mxfp4)(?=[-_.]|$)")
_VERSION = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Outcome:
    """Where the first fixes of a file lead."""

    left: tuple[Problem, ...]
    """Problems of the last file. Each has a command or advice as its fix, or the rounds were not enough."""
    changes: tuple[str, ...]
    """Changes of a name, number or unit that the fix does not mention."""

    @property
    def failure(self) -> str:
        """What is wrong; empty if the file is accepted, or no key of it can solve what is left."""
        refused = [str(problem) for problem in self.left if _has_data(problem)]
        return "\n".join([*(f"still refused: {text}" for text in refused), *self.changes])


def follow_first_fixes(text: str, read: Callable[[str], object]) -> Outcome:
    """Apply the first fix of every problem, at most three times. `read` raises FleetError for a wrong fleet."""
    changes: list[str] = []
    left = find_problems(text, read)
    for _ in range(MOST_ROUNDS):
        if not any(map(_has_data, left)):
            break
        for problem in reversed(_select(left)):
            document = parse_document(text, problem.file)
            fixed = apply_fix(document, problem.fix)  # type: ignore[arg-type]
            changes += find_silent_changes(problem, document.data, fixed)
            text = yaml.safe_dump(fixed, sort_keys=False, allow_unicode=True)
        left = find_problems(text, read)
    return Outcome(left, tuple(changes))


def _has_data(problem: Problem) -> bool:
    fix = problem.fix
    return not isinstance(fix, Fix) or not (fix.command or fix.is_advice)


def _select(problems: tuple[Problem, ...]) -> list[Problem]:
    """Return the problems whose fixes can be applied one after the other: one of each key that is written."""
    found: dict[str, Problem] = {}
    for problem in filter(_has_data, problems):
        assert isinstance(problem.fix, Fix), f"not data: {problem}"
        if not any(_overlaps(problem.fix, other.fix) for other in found.values()):  # type: ignore[arg-type]
            found[problem.fix.path] = problem
    return list(found.values())


def _overlaps(one: Fix, other: Fix) -> bool:
    a, b = one.path, other.path
    return a == b or a.startswith((f"{b}.", f"{b}[")) or b.startswith((f"{a}.", f"{a}["))


def find_silent_changes(problem: Problem, before: Any, after: Any) -> Iterator[str]:
    """Yield the values that a fix changes to something that neither its text nor the message names.

    A model is never another one, also not with a comment, except where the key had no model at all."""
    fix = problem.fix
    assert isinstance(fix, Fix)
    old, new = dict(_list_leaves(before)), dict(_list_leaves(after))
    for path in sorted(old.keys() & new.keys()):
        was, now = old[path], new[path]
        if was is None or was == now or _is_same(was, now) or _is_named(now, problem.message):
            continue
        if path.endswith((".source", ".architecture")) and not fix.why.startswith("an example"):
            yield f"{path}: `{was}` became `{now}`: {fix}"
        elif not fix.why and (_QUANTITY.fullmatch(str(now)) or not _names_key(path, problem)):
            yield f"{path}: {was!r} became {now!r} without a word: {problem.message}: {fix}"
    if fix.is_removal or fix.replaces is not None or fix.why:
        return
    for path in sorted(old.keys() - new.keys()):
        if not path.startswith(problem.path) and not _is_below(path, new):
            yield f"{path}: {old[path]!r} was removed without a word: {fix}"


def _is_named(value: Any, message: str) -> bool:
    """Whether the message has the value, or the number of a quantity."""
    found = _QUANTITY.fullmatch(str(value))
    return re.search(rf"(?<![\w.-]){re.escape(found[1] if found else str(value))}(?![\w-])", message) is not None


def _names_key(path: str, problem: Problem) -> bool:
    """Whether the problem is about this key, and its value is a word or a flag."""
    return path == problem.path or path.rpartition(".")[2] in problem.message


def _is_below(path: str, leaves: dict[str, Any]) -> bool:
    """Whether a value took the place of another type: a list that became a word."""
    return any(path.startswith(other) or other.startswith(path) for other in leaves)


def _is_same(old: Any, new: Any) -> bool:
    """Whether two values are one: the same number and unit, or names with the same versions and sizes."""
    before, after = _QUANTITY.fullmatch(str(old)), _QUANTITY.fullmatch(str(new))
    if before and after:
        return float(before[1]) == float(after[1]) and _spell(before[2]) in ("", _spell(after[2]))
    if before or after:
        return False
    return _list_versions(str(old)) == _list_versions(str(new))


def _spell(unit: str) -> str:
    unit = unit.lower()
    return _UNITS.get(unit, unit)


def _list_versions(name: str) -> list[str]:
    """Return versions and sizes in the last part of a name, without its quantization and its digest."""
    return sorted(_VERSION.findall(_QUANTIZED.sub("", _DIGEST.sub("", name.rpartition("/")[2].lower()))))


def _list_leaves(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _list_leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _list_leaves(value, f"{path}[{index}]")
    else:
        yield path, data
