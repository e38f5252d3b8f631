"""Plain messages for wrong arguments: typer passes on the sentences of pydantic, and names no near choice."""

from typing import Any

from pydantic import ValidationError

from rayhelm.fleet.base import short
from rayhelm.fleet.nearest import nearest
from rayhelm.fleet.translate import describe_type

__all__ = ["describe_argument"]


def describe_argument(error: Any) -> str | None:
    """The message for a wrong value of an option or argument; None if typer's own message is right."""
    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        return None
    (detail, *_) = cause.errors(include_url=False)
    choices = _list_choices(error)
    if not choices:
        return f"`{short(detail['input'])}`: {describe_type(detail)}"
    near = " or ".join(f"`{name}`" for name in nearest(str(detail["input"]), choices))
    message = f"`{short(detail['input'])}` is not one of {', '.join(choices)}"
    return f"{message}; did you mean {near}?" if near else message


def _list_choices(error: Any) -> list[str]:
    descriptor = getattr(getattr(error, "param", None), "type_descriptor", None)
    return [str(choice) for choice in getattr(descriptor, "choices", None) or ()]
