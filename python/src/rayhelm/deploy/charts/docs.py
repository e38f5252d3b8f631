"""Generate a commented values.yaml and the README table from a values model."""

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from rayhelm.deploy.charts.shape import Key, default_of, keys, summary

__all__ = ["readme_table", "values_yaml"]

WIDTH = 118
_REQUIRED = object()


def values_yaml(model: type[BaseModel]) -> str:
    """Return the text of values.yaml: every section with its defaults, and for each map of entries one commented
    entry with all keys."""
    blocks = ("\n".join(_format_key(key, key.field.get_default(call_default_factory=True))) for key in keys(model))
    return "# Generated from the values model. Do not edit: `make generate` writes it.\n\n" + "\n\n".join(blocks) + "\n"


def readme_table(model: type[BaseModel]) -> str:
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    return "\n".join(rows + list(_build_rows(model, "", None))) + "\n"


def _format_key(key: Key, default: Any) -> Iterator[str]:
    yield from _format_comment(f"-- {key.doc}")
    if isinstance(default, BaseModel):
        yield f"{key.name}:"
        for below in keys(type(default)):
            yield from _indent(_format_key(below, getattr(default, _get_attribute(type(default), below.name))), "  ")
        return
    yield f"# {key.name}:" if default is None else f"{key.name}: {_format_inline(default)}"
    if key.entry:
        yield from _indent(["<name>:", *_indent(_format_entry(key.entry), "  ")], "  # ")


def _format_entry(model: type[BaseModel]) -> Iterator[str]:
    defaults = default_of(model)
    for key in keys(model):
        yield from _format_comment(f"-- {key.doc}", WIDTH - 8)
        if key.entry:
            yield f"{key.name}:" if key.field.is_required() else f"{key.name}: {{}}"
            prefix = "  " if key.field.is_required() else "  # "
            yield from _indent(["<name>:", *_indent(_format_entry(key.entry), "  ")], prefix)
        elif key.section:
            yield f"{key.name}:"
            yield from _indent(_format_entry(key.section), "  ")
        elif key.field.is_required():
            yield f"{key.name}:  # required"
        elif key.name in defaults:
            yield f"{key.name}: {_format_inline(defaults[key.name])}"
        else:
            yield f"# {key.name}:"


def _build_rows(model: type[BaseModel], prefix: str, section: BaseModel | None) -> Iterator[str]:
    """Yield a row for each key. `section`: default of the section with the keys, which may differ from the defaults of
    its type."""
    for key in keys(model):
        path = f"{prefix}{key.name}"
        default = _get_default(key, model, section)
        if key.section:
            yield f"| `{path}` | section | | {_format_cell(key.doc)} |"
            yield from _build_rows(key.section, f"{path}.", default if isinstance(default, BaseModel) else None)
            continue
        shown = "required" if default is _REQUIRED else "" if default is None else f"`{_format_inline(default)}`"
        yield f"| `{path}` | {summary(key.field.annotation)} | {shown} | {_format_cell(key.doc)} |"
        if key.entry:
            yield from _build_rows(key.entry, f"{path}.<name>.", None)


def _get_default(key: Key, model: type[BaseModel], section: BaseModel | None) -> Any:
    if section is not None:
        return getattr(section, _get_attribute(model, key.name))
    if key.field.is_required():
        return _REQUIRED
    return key.field.get_default(call_default_factory=True)


def _format_comment(text: str, width: int = WIDTH) -> list[str]:
    return textwrap.wrap(text, width, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def _indent(lines: Any, prefix: str) -> Iterator[str]:
    for line in lines:
        yield f"{prefix}{line}"


def _format_inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _format_cell(text: str) -> str:
    """Return the text of a table cell, with angle brackets escaped outside of code."""
    parts = text.replace("|", "\\|").split("`")
    return "`".join(part if inside % 2 else part.replace("<", "&lt;") for inside, part in enumerate(parts))


def _get_attribute(model: type[BaseModel], alias: str) -> str:
    return next(name for name, field in model.model_fields.items() if (field.alias or name) == alias)
