"""Secrets in `values` of the fleet file, which is in Git, and whose values everyone who reads the objects reads."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.base import short
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.overrides import Override, list_overrides
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.yaml_nodes import Path

__all__ = ["check_secrets"]

_NAME = re.compile(r"(?i)(^|[_.-])([a-z0-9]*(apikey|passw(or)?d|passphrase|secret)|key|token|credentials?)$")
"""Names of variables that hold a secret. Chart templates have the same pattern (lib.isSecret)."""
_PUBLIC = re.compile(r"\$\([A-Za-z_][A-Za-z0-9_.-]*\)|true|false|[0-9]*")
"""Values that are no secret: another variable, a switch, a number."""
_PASSWORD = re.compile(r"://[^/\s@:]*:[^/\s@]+@")


def check_secrets(fleet: Fleet) -> Iterator[Problem]:
    """Yield a problem for each variable and URL of `values` that has a secret. No message has its value."""
    for override in list_overrides(fleet):
        yield from _check(override.values, override.path, {}, override)


def _check(value: Any, path: Path, holder: Mapping[str, Any], override: Override) -> Iterator[Problem]:
    """`holder`: the map above the one that has the value."""
    if isinstance(value, str) and _PASSWORD.search(value):
        message = "the URL has a password, which all readers of the file and of the objects in the cluster can read"
        yield problem_at(path, message, Fix.removal("", "give it as a Secret, by `extraEnv` with `valueFrom`"))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _check(item, (*path, index), {}, override)
    elif isinstance(value, Mapping):
        name = value.get("name")
        if path[-2:-1] == ("extraEnv",) and _is_secret(name, value.get("value")):
            yield problem_at(path, _describe(name), Fix("", _build_reference(str(name))))
            return
        for key, item in value.items():
            if path[-1] == "env" and _is_secret(key, item):
                yield _build_problem(key, (*path, key), holder, override)
            else:
                yield from _check(item, (*path, key), value, override)


def _is_secret(name: object, value: object) -> bool:
    return bool(
        isinstance(name, str) and _NAME.search(name) and value is not None and not _PUBLIC.fullmatch(_text(value))
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _describe(name: object) -> str:
    return (
        f"`{short(name)}` is the name of a secret, and all readers of the file and of the objects in the cluster can"
        " read its value: name a Secret, or a ConfigMap if it is none"
    )


def _build_problem(name: str, path: Path, holder: Mapping[str, Any], override: Override) -> Problem:
    if override.chart != "ray-service" or "serve" in path:
        fix = Fix.removal("", "and give it to the pods: `extraEnv` with `valueFrom` in the `values` of the pool")
    else:
        others = holder.get("extraEnv") or []
        fix = Fix("../../extraEnv", [*others, _build_reference(name)], "with the name of your Secret", replaces="")
    return problem_at(path, _describe(name), fix)


def _build_reference(name: str) -> dict[str, Any]:
    secret = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": name}}}
