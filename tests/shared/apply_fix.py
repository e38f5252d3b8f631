"""Applies the fix of a problem to the fleet file that has it, as a program would."""

import copy
from typing import Any

import yaml

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.fleet.document import Document, parse_document

__all__ = ["apply_fix", "check_fixes"]


def check_fixes(text: str, problems: list[Problem], read: Any) -> None:
    """Fail unless each fix is YAML, or a comment, and solves its problem. `read` raises FleetError for a wrong fleet.

    The next problem of the same key may remain: a route that has its host then needs its clients.
    """
    for problem in problems:
        assert isinstance(problem.fix, Fix), f"not data: {problem}"
        if problem.fix.command:
            continue
        yaml.safe_load(problem.fix_text)
        if problem.fix.is_advice or not problem.path or "is a duplicate" in problem.message:
            continue
        document = parse_document(text, problem.file)
        for fix in (problem.fix, *problem.alternatives):
            if fix.command or fix.is_advice:
                continue
            fixed = apply_fix(document, fix)
            left = find_problems(yaml.safe_dump(fixed, sort_keys=False, allow_unicode=True), read)
            same = [other for other in left if (other.path, other.message) == (problem.path, problem.message)]
            assert not same, f"{problem}\nis still there with {fix}"


def find_problems(text: str, read: Any) -> tuple[Problem, ...]:
    try:
        read(text)
    except FleetError as error:
        return error.problems
    return ()


def apply_fix(document: Document, fix: Fix) -> Any:
    data = copy.deepcopy(document.data)
    if fix.replaces is not None:
        _remove(data, fix.replaces)
    if fix.is_removal:
        _remove(data, fix.path)
        return data
    here, key = _find(data, fix.path)
    here[key] = copy.deepcopy(fix.value)
    return data


def _remove(data: Any, path: str) -> None:
    here, key = _find(data, path)
    del here[key]


def _find(here: Any, path: str) -> tuple[Any, Any]:
    """The map or list that has the last step of a path, and that step. Names may have dots, so the longest is taken."""
    if isinstance(here, list):
        index, _, rest = path.removeprefix("[").partition("]")
        rest = rest.removeprefix(".")
        return _find(here[int(index)], rest) if rest else (here, int(index))
    known = [key for key in here if path == key or path.startswith((f"{key}.", f"{key}["))]
    if not known:
        key, _, rest = path.partition(".")
        return _find(here.setdefault(key, {}), rest) if rest else (here, key)
    key = max(known, key=len)
    rest = path.removeprefix(key).removeprefix(".")
    return _find(here[key], rest) if rest else (here, key)
