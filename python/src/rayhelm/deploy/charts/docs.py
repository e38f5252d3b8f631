"""Generate a commented values.yaml and the README table from a values model."""

import json
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from pydantic import BaseModel

from rayhelm.deploy.charts.shape import Key, keys, summary

__all__ = ["load_examples", "readme_table", "shorten", "values_yaml"]

Path = tuple[str, ...]
WIDTH = 115
"""Columns of a comment in values.yaml, with its indentation."""
_REQUIRED = object()


def values_yaml(model: type[BaseModel], chart: str, smallest: str) -> str:
    """Return the text of values.yaml: the smallest values as a comment, then every key with its default and the first
    sentence of its meaning. An empty map or list has an example behind or below it."""
    examples = load_examples(chart)
    blocks = ("\n".join(_format_key(key, _get_default(key, model, None), (), examples)) for key in keys(model))
    return f"{_format_head(chart, smallest)}\n\n" + "\n\n".join(blocks) + "\n"


def readme_table(model: type[BaseModel]) -> str:
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    return "\n".join(rows + list(_build_rows(model, "", None))) + "\n"


def shorten(text: str, width: int) -> str:
    """Return the first sentence, and those behind it that fit into the width. A sentence that is too long ends before a
    semicolon or colon."""
    short, *rest = re.split(r"(?<=\.) +(?=[A-Z`*])", text)
    if len(short) > width:
        clauses = [short[: found.start()] for mark in ("; ", ": ") for found in re.finditer(mark, short)]
        return next((f"{each}." for each in clauses if 40 < len(each) < width), short)
    for sentence in rest:
        if len(f"{short} {sentence}") > width:
            break
        short = f"{short} {sentence}"
    return short


@cache
def load_examples(chart: str) -> dict[Path, str]:
    """Return the YAML of the example of each map and list by its path: `("quota", "gpus")`, and `("*", "labels")` for
    each key of that name."""
    shared = {("*", path[0]): text for path, text in _read_examples("shared") if len(path) == 1}
    return shared | dict(_read_examples(chart))


def _read_examples(name: str) -> Iterator[tuple[Path, str]]:
    text = files("rayhelm").joinpath(f"data/examples/{name}.yaml").read_text(encoding="utf-8")

    def walk(node: yaml.Node | None, path: Path) -> Iterator[tuple[Path, str]]:
        if path and node:
            start, end = node.start_mark, node.end_mark
            yield path, textwrap.dedent(" " * start.column + text[start.index : end.index]).rstrip()
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                yield from walk(value, (*path, key.value))

    yield from walk(yaml.compose(text), ())


def _format_head(chart: str, smallest: str) -> str:
    lines = [
        f"Values of chart {chart}: each key with its default. Generated from the values model by `make generate`.",
        "README.md (`helm show readme`) explains each key in full.",
        "",
    ]
    if smallest.strip() == "{}":
        lines.append("The defaults are a working example: the chart needs no values.")
    else:
        lines += ["A working example, for a file of your own:", "", *smallest.rstrip().splitlines()]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def _format_key(key: Key, default: Any, above: Path, examples: dict[Path, str]) -> Iterator[str]:
    path = (*above, key.name)
    yield f"# -- {shorten(key.doc, WIDTH - 2 * len(above))}"
    if isinstance(default, BaseModel):
        yield f"{key.name}:"
        for below in keys(type(default)):
            value = getattr(default, _get_attribute(type(default), below.name))
            yield from _indent(_format_key(below, value, path, examples), "  ")
        return
    line = f"# {key.name}:" if default is None else f"{key.name}: {_format_inline(default)}"
    example = examples.get(path, examples.get(("*", key.name))) if default in ({}, []) else None
    if example and example[0] in "{[":
        yield f"{line}  # {example}"
        return
    yield line
    if example:
        yield from _indent(example.splitlines(), "  # ")


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
