"""`rayhelm lint` of what people wrote with metrics: rule files, dashboards, values, and queries in Kubernetes objects.

Names that do not exist are refused everywhere. Expressions of rules, panels and scalers are checked as PromQL; metrics
of other programs are left alone.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from rayhelm.check.admission.manifests import are_manifests, read_manifests
from rayhelm.check.lint.fleet import Checked, NotChecked
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts.metrics import find_replacement
from rayhelm.fleet.document import read_document, read_text
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.yaml_nodes import Path as FieldPath
from rayhelm.fleet.yaml_nodes import dotted

__all__ = ["check_queries", "find_query_files", "is_file_of_others"]

_ADAPTER = ("metricsQuery", "seriesQuery")
"""Keys of rules of prometheus-adapter with PromQL."""
_TEMPLATE = re.compile(r"<<[^<>]*>>")
"""Part of a metricsQuery that prometheus-adapter fills in."""
_SERIES = re.compile(r"[A-Za-z_:][\w:]*")
BLOCK = re.compile(r"[|>][-+]?\s*$")
"""End of a line before a block of text."""


_SHOWN = 5
"""Files that a message names."""
_OTHER_CHARTS = {
    "rules": "values of prometheus-adapter",
    "serverFiles": "values of Prometheus",
    "additionalPrometheusRules": "values of kube-prometheus-stack",
    "additionalPrometheusRulesMap": "values of kube-prometheus-stack",
}
"""Charts of others whose values have queries, by a key at the top."""


@dataclass(frozen=True)
class _Text:
    """One text of a file."""

    path: FieldPath
    text: str
    line: int | None
    """Line of its first row."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """The map that has it."""
    above: Mapping[str, Any] = field(default_factory=dict)
    """The map that has that map."""


def find_query_files(path: Path) -> list[Path]:
    """Rule files, dashboards, values of our charts, and Kubernetes objects, at a path or in a folder."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [file for file in files if file.is_file() and _kind(file)]


def is_file_of_others(file: Path) -> bool:
    """Return whether a YAML file has keys at the top, and none of a fleet file."""
    known = {each.alias or name for name, each in Fleet.model_fields.items()}
    keys = _keys(file)
    return bool(keys) and keys.isdisjoint(known)


def check_queries(path: Path) -> Checked:
    """Check the queries of all files at a path. Raises FleetError for a file that cannot be read."""
    checked = Checked()
    for file in find_query_files(path):
        kind, texts = _kind(file), list(_texts(file))
        problems = [problem for text in texts for problem in _check(text, str(file))]
        checked.problems += problems
        count = sum(_is_query(text) for text in texts)
        if not problems and (count or kind != "objects"):
            checked.done.append(f"{file}: {kind}: {count} queries, and no metric name that does not exist")
    if path.is_dir() and (unknown := [str(file) for file in sorted(path.rglob("*")) if _is_unknown(file)]):
        more = f", and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        what = f"not checked: YAML of a kind that lint does not know: {', '.join(unknown[:_SHOWN])}{more}"
        checked.not_checked.append(NotChecked(what))
    return checked


def _is_unknown(file: Path) -> bool:
    """Return whether a file is YAML that no check reads. Fleet files have checks of their own."""
    is_yaml = file.is_file() and file.suffix in (".yaml", ".yml")
    return is_yaml and not _kind(file) and is_file_of_others(file)


def _kind(file: Path) -> str:
    """Return the kind of a file; empty if it has no queries."""
    if file.suffix == ".json":
        return "dashboard" if '"panels"' in _start(file, 1 << 20) else ""
    if file.suffix not in (".yaml", ".yml"):
        return ""
    keys = _keys(file)
    if not keys or "fleet" in keys:
        return ""
    if are_manifests(file):
        return "objects"
    if "groups" in keys:
        return "rules"
    if any(keys <= values for values in _keys_of_values()):
        return "values"
    return next((kind for key, kind in _OTHER_CHARTS.items() if key in keys), "")


def _keys(file: Path) -> set[str]:
    """Keys at the top of a YAML file, which may be broken."""
    return {line.partition(":")[0] for line in _start(file, 1 << 20).splitlines() if re.match(r"[A-Za-z]\w*:", line)}


def _start(file: Path, size: int) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(size).decode(errors="replace")
    except OSError:
        return ""


@cache
def _keys_of_values() -> list[set[str]]:
    """Keys at the top of the values of each chart."""
    schemas = sorted(charts_dir().glob("*/values.schema.json"))
    return [set(json.loads(schema.read_text())["properties"]) for schema in schemas]


def _texts(file: Path) -> Iterator[_Text]:
    if file.suffix == ".json":
        yield from _texts_of_dashboard(file)
        return
    if _kind(file) != "objects":
        document, rows = read_document(file), read_text(file).splitlines()
        yield from _walk(document.data, (), document.lines, rows)
        return
    for manifest in read_manifests(file):
        yield from _walk(manifest.item, (), manifest.lines, list(manifest.text))


def _walk(
    value: Any, path: FieldPath, lines: Any, rows: list[str], above: tuple[Mapping[str, Any], ...] = ({}, {})
) -> Iterator[_Text]:
    """Yield the texts of a value. `above`: the map that has the value, and the map that has that one."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _walk(each, (*path, key), lines, rows, (value, above[0]))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _walk(each, (*path, index), lines, rows, above)
    elif isinstance(value, str):
        line = lines.get(path)
        if line is not None and line <= len(rows) and BLOCK.search(rows[line - 1]):
            line += 1
        yield _Text(path, value, line, *above)


def _texts_of_dashboard(file: Path) -> Iterator[_Text]:
    text = read_text(file)
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise FleetError(Problem(f"not valid JSON: {error.msg}", "", str(file), error.lineno)) from None
    rows = text.splitlines()
    for each in _walk(data, (), {}, []):
        written = json.dumps(each.text)[1:-1]
        line = next((number for number, row in enumerate(rows, 1) if written in row), None)
        yield replace(each, line=line)


def _is_query(text: _Text) -> bool:
    """Return whether a text is an expression of a rule, a panel, a scaler of KEDA or a rule of prometheus-adapter. KEDA
    has scalers with queries of other languages."""
    if text.path[-2:] == ("metadata", "query"):
        return bool(text.above.get("type", "prometheus") == "prometheus")
    return text.path[-1:] == ("expr",) or text.path[-1:] in [(key,) for key in _ADAPTER]


def _check(text: _Text, file: str) -> Iterator[Problem]:
    if _is_query(text):
        from rayhelm.observe.check import check_query

        query = _fill_in(text)
        for problem in check_query(query, name=dotted(text.path), file=file, line=text.line, is_ours=False):
            # A seriesQuery selects series, and computes nothing of their values.
            if text.path[-1] != "seriesQuery" or problem.rule in ("promql-syntax", "promql-metric"):
                yield _with_whole_text(problem, text)
        if text.path[-1] != "seriesQuery":
            return
    for name in dict.fromkeys(re.findall(r"(?<![\w:])[A-Za-z_:][\w:]*", text.text)):
        if replaced := find_replacement(name):
            closest, replacement = replaced
            message = f"{name} does not exist. {replacement.why}"
            yield Problem(message, dotted(text.path), file, text.line, _fix(text, name, closest), "promql-replaced")


def _fill_in(text: _Text) -> str:
    """Return a query with values where prometheus-adapter fills them in: the series of its seriesQuery."""
    if "<<" not in text.text:
        return text.text
    from rayhelm.observe.promql import find_metric

    series = _SERIES.match(str(text.beside.get("seriesQuery", "")))
    name = series[0] if series and find_metric(series[0]) else "series_of_the_rule"
    query = re.sub(r"<<\s*\.Series\s*>>", name, text.text)
    query = re.sub(r"<<\s*\.LabelMatchers\s*>>", 'namespace="a"', query)
    return _TEMPLATE.sub("namespace", query)


def _with_whole_text(problem: Problem, text: _Text) -> Problem:
    """The fix as YAML: the whole expression where only a name is wrong, else the advice."""
    if problem.rule == "promql-replaced" and (absent := re.search(r"([\w:]+) does not exist\.", problem.message)):
        return replace(problem, fix=_fix(text, absent[1], problem.fix_text))
    if problem.rule == "promql-metric" and (wrong := re.search(r"does not have ([\w:]+);", problem.message)):
        return replace(problem, fix=_fix(text, wrong[1], problem.fix_text))
    return replace(problem, fix=Fix.advice(problem.fix_text))


def _fix(text: _Text, name: str, use: str) -> Fix:
    return Fix(dotted(text.path), re.sub(rf"(?<![\w:]){re.escape(name)}(?![\w:])", use, text.text))
