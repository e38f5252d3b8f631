"""Edit of a catalog file that keeps its comments, order and form."""

import re
import textwrap
from collections.abc import Iterable
from typing import Any

import yaml

from rayhelm.facts.metrics import Metric
from testbed.live_metrics.catalog.compare import Change

__all__ = ["apply_changes"]

WIDTH = 120
FIELDS = tuple(Metric.model_fields)
"""Order of the fields of an entry."""
Entry = dict[str, list[str]]
"""Lines of each field of a metric."""
METRIC = re.compile(r"^  ([A-Za-z_]\w*):$")
FIELD = re.compile(r"^    (\w+):")


def apply_changes(text: str, changes: Iterable[Change]) -> str:
    """Return a file of the catalog with the changes that are to be written. Other lines stay as they are."""
    head, entries, tail = _split(text)
    for change in changes:
        if not change.is_written:
            continue
        if change.entry:
            _insert(entries, change.metric, change.entry)
        else:
            _set(entries[change.metric], change.field, change.new)
    lines = [*head]
    for name, fields in entries.items():
        lines += [f"  {name}:", *(line for field in fields.values() for line in field)]
    return "\n".join([*lines, *tail])


def _split(text: str) -> tuple[list[str], dict[str, Entry], list[str]]:
    """Return the lines up to `metrics:`, the entries, and the lines after them."""
    lines = text.split("\n")
    start = lines.index("metrics:") + 1
    ends = (number for number, line in enumerate(lines[start:], start) if not line.startswith("  "))
    end = next(ends, len(lines))
    entries: dict[str, Entry] = {}
    for line in lines[start:end]:
        if metric := METRIC.match(line):
            fields = entries.setdefault(metric[1], {})
            continue
        if found := FIELD.match(line):
            field = fields.setdefault(found[1], [])
        field.append(line)
    return lines[:start], entries, lines[end:]


def _set(fields: Entry, field: str, value: Any) -> None:
    """Write a field in its place, or remove one with its default."""
    fields.pop(field, None) if _is_default(field, value) else fields.update({field: _lines(field, value)})
    ordered = sorted(fields.items(), key=lambda item: FIELDS.index(item[0]))
    fields.clear()
    fields.update(ordered)


def _is_default(field: str, value: Any) -> bool:
    about = Metric.model_fields[field]
    return not about.is_required() and value == about.default


def _insert(entries: dict[str, Entry], name: str, metric: Metric) -> None:
    """Add an entry: in order if the names of the file are sorted, else at the end."""
    is_sorted = list(entries) == sorted(entries)
    entry: Entry = {}
    for field in FIELDS:
        _set(entry, field, getattr(metric, field))
    entries[name] = entry
    if is_sorted:
        ordered = sorted(entries.items())
        entries.clear()
        entries.update(ordered)


def _lines(field: str, value: Any) -> list[str]:
    if isinstance(value, tuple):
        items = ", ".join(f"{item:g}" if isinstance(item, float) else item for item in value)
        return _wrap(f"    {field}: [{items}]", "      ")
    line = f"    {field}: {_scalar(value)}"
    if isinstance(value, str) and len(line) > WIDTH:
        return [f"    {field}: >-", *_wrap(f"      {value}", "      ", 112)]
    return [line]


def _wrap(text: str, indent: str, width: int = WIDTH) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _scalar(value: Any) -> str:
    """Return a value as YAML on one line, with quotes where it needs them."""
    return str(yaml.safe_dump(value, width=10_000, allow_unicode=True)).removesuffix("...\n").strip()
