"""Checks that fail: the object that a check fails on becomes a finding, and the other objects are still checked."""

import shlex
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from rayhelm.errors import RayhelmError
from rayhelm.live.cluster.fields import MalformedError, describe_object
from rayhelm.live.doctor.finding import Finding, Severity

__all__ = ["describe_failure", "describe_malformed", "find_in_each", "locate"]

T = TypeVar("T")
_PACKAGE = Path(__file__).parents[2]


def _name(item: Any) -> str:
    return describe_object(item, str(item.get("kind", "")))


def find_in_each(
    items: Iterable[T], find: Callable[[T], Iterable[Finding]], name: Callable[[T], str] = _name
) -> Iterator[Finding]:
    """Yield the findings of each object. One that `find` fails on is a finding, and does not hide those of others.

    `name` returns `KIND NAMESPACE/NAME` of items that are no objects themselves."""
    for item in items:
        try:
            yield from list(find(item))
        except MalformedError as error:
            yield describe_malformed(error)
        except RayhelmError:
            raise
        except Exception as error:
            yield describe_failure(name(item), error)


def describe_failure(name: str, error: Exception) -> Finding:
    """Return the finding for an error that no check expects. The text of the error may have the content of a Secret,
    so it is not shown."""
    return Finding(
        object=name,
        severity=Severity.warning,
        evidence=f"check failed: {locate(error)}",
        cause="this check cannot read the object, so its state is not known; the other objects were checked",
        fix=_show(name),
    )


def describe_malformed(error: MalformedError) -> Finding:
    """Return the finding for an object that the checks leave out."""
    return Finding(
        object=error.object,
        severity=Severity.warning,
        evidence=f"check failed: {error.problem}"[:400],
        cause="the object has another form than this check reads, so its state is not known; the other objects were"
        " checked",
        fix=_show(error.object),
    )


def locate(error: Exception) -> str:
    """Return type, file and line of an error."""
    files = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    own = [(file, line) for file, line in files if file.is_relative_to(_PACKAGE)]
    file, line = (own or files)[-1]
    return f"{type(error).__name__} at {file.name}:{line}"


def _show(name: str) -> str:
    kind, _, path = name.partition(" ")
    namespace, _, plain = path.rpartition("/")
    if not kind or not plain or " " in path:
        return "kubectl get events -A    # the object has no name that can be shown"
    where = f" -n {shlex.quote(namespace)}" if namespace else ""
    return f"kubectl get {kind.lower()} {shlex.quote(plain)}{where} -o yaml    # correct what the evidence names"
