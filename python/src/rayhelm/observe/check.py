"""Check PromQL against the catalog of metrics. Refuse a query that cannot return what it seems to.

| rule | refuses |
|---|---|
| promql-syntax | text that Prometheus cannot parse |
| promql-metric | a metric that the catalog does not have |
| promql-replaced | a name of old articles that does not exist |
| promql-label | a label that no metric of the expression has |
| promql-bucket | a matcher of `le` that is not a bound of the histogram |
| promql-rate | `rate`, `irate` or `increase` of a gauge; `delta`, `deriv` or `idelta` of a counter |
| promql-counter | the value of a counter without `rate` or `increase` |
| promql-quantile | a mean or sum of quantiles; `histogram_quantile` without `le` |
| promql-sum | `_sum` of a histogram whose sums Ray approximates |
| promql-absent | `absent` of a metric that is absent in a healthy service |
| promql-once | a gauge that vanishes 20 s after the start |

`promql_parser` is a compiled package, so it is imported when a query is checked.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from rayhelm.errors import Fix, Problem
from rayhelm.facts.metrics import SUFFIXES, Metric, exporter_of, find_replacement, load_metrics
from rayhelm.observe.promql import (
    QUANTILES,
    Node,
    find_labels,
    find_metric,
    is_kind,
    parse,
    replace_placeholders,
    walk,
)
from rayhelm.observe.queries.labels import TARGET_LABELS

__all__ = ["check_query", "metrics_of"]

RATES = {"rate", "irate", "increase"}
DELTAS = {"delta", "idelta", "deriv", "predict_linear"}
COUNTS = {"count", "group"}
"""Aggregations for which the value does not matter."""
_ALIKE = 0.8
"""Similarity of a mistyped name to the right one."""
ANY_VALUE = {"absent", "absent_over_time", "changes", "resets", "timestamp", "present_over_time", "count_over_time"}
"""Functions for which the value does not matter."""
MEANS = {"avg", "sum", "avg_over_time", "sum_over_time"}


@cache
def _prefixes() -> tuple[str, ...]:
    """Beginnings of metrics that the catalog has in full: `ray_gcs_`. Those of applications begin with `ray_` too."""
    names = (name for name in load_metrics() if name.startswith("ray_"))
    return tuple(sorted({"_".join(name.split("_")[:2]) + "_" for name in names}))


@dataclass
class _Check:
    """Problems of one query."""

    text: str
    name: str
    file: str
    line: int | None
    is_ours: bool
    seen: dict[str, int] = field(default_factory=dict)
    """How often each name was visited, so that a problem names the right column."""
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, rule: str, word: str, message: str, fix: Fix | str) -> None:
        """Add a problem at the column of a word."""
        at = self._index(word)
        row, column = self.text.count("\n", 0, at), at - (self.text.rfind("\n", 0, at) + 1) + 1
        line = None if self.line is None else self.line + row
        problem = Problem(f"column {column}: {message}", self.name, self.file, line, fix, rule)
        if problem not in self.problems:
            self.problems.append(problem)

    def _index(self, word: str) -> int:
        """Position of a word: of the occurrence that is being visited."""
        places = [match.start() for match in re.finditer(rf"(?<![\w:]){re.escape(word)}(?![\w:])", self.text)]
        return places[min(self.seen.get(word, 1), len(places)) - 1] if word and places else 0


def metrics_of(text: str) -> set[str]:
    """Metrics of the catalog that a query reads. Raises FleetError for text that is not PromQL."""
    root = parse(replace_placeholders(text))
    if isinstance(root, str):
        raise ValueError(root)
    names = {node.expression.name for node in walk(root) if is_kind(node.expression, "VectorSelector")}
    return {found[0] for name in names if name and (found := find_metric(name))}


def check_query(
    text: str, *, name: str = "query", file: str = "", line: int | None = None, is_ours: bool = True
) -> list[Problem]:
    """Problems of a query, each with the column, the cause and a fix. Raises MissingError without `promql-parser`.

    `is_ours` False is for a query of a user: metrics of programs that the catalog does not have are allowed, and labels
    are not checked, because users add labels.
    """
    check = _Check(text, name, file, line, is_ours)
    root = parse(replace_placeholders(text))
    if isinstance(root, str):
        check.refuse(
            "promql-syntax", "", f"Prometheus cannot parse the query: {root}", "check the brackets and the operators"
        )
        return check.problems
    for node in walk(root):
        if is_kind(node.expression, "VectorSelector"):
            _check_selector(check, node)
        else:
            _check_operation(check, node)
    return check.problems


def _check_selector(check: _Check, node: Node) -> None:
    name = node.expression.name or ""
    check.seen[name] = check.seen.get(name, 0) + 1
    if not name:
        if check.is_ours:
            _refuse_nameless(check)
        return
    found = find_metric(name)
    if not found:
        _refuse_unknown(check, name)
        return
    base, suffix = found
    metric = load_metrics()[base]
    _check_matchers(check, node, base, suffix)
    if suffix == "_sum" and exporter_of(base).approximate_sums:
        check.refuse(
            "promql-sum",
            name,
            f"Ray computes {name} from the middle of each bucket, so it is wrong, and so is a mean from it",
            f"histogram_quantile(0.5, sum by (le) (rate({base}_bucket[5m])))",
        )
    if metric.availability == "once":
        check.refuse(
            "promql-once",
            name,
            f"{name} vanishes 20 s after the engine started, so the query has no data",
            "use another metric: docs/reference/metrics.md",
        )
    _check_absent(check, node, name, metric)
    _check_type(check, node, name, "counter" if suffix or metric.type == "counter" else "gauge")


def _refuse_nameless(check: _Check) -> None:
    check.refuse("promql-metric", "", "a selector without a name cannot be checked", "write the name of the metric")


def _refuse_unknown(check: _Check, name: str) -> None:
    if replaced := find_replacement(name):
        closest, replacement = replaced
        check.refuse("promql-replaced", name, f"{name} does not exist. {replacement.why}", closest)
        return
    if (metric := load_metrics().get(name)) and metric.type == "histogram":
        message = f"{name} is a histogram and has no series of that name"
        check.refuse("promql-metric", name, message, f"histogram_quantile(0.95, sum by (le) (rate({name}_bucket[5m])))")
        return
    if not check.is_ours and not name.startswith(_prefixes()):
        return
    near = _nearest(name)
    message = f"the catalog of metrics does not have {name}" + (f"; the nearest name is {near}" if near else "")
    check.refuse("promql-metric", name, message, near or "a name of docs/reference/metrics.md")


def _nearest(name: str) -> str:
    """Return the nearest name; a series of a histogram keeps its suffix."""
    from difflib import get_close_matches

    suffix = next((each for each in SUFFIXES if name.endswith(each)), "")
    histograms = [known for known, metric in load_metrics().items() if metric.type == "histogram"]
    if suffix and (near := get_close_matches(name.removesuffix(suffix), histograms, n=1, cutoff=_ALIKE)):
        return near[0] + suffix
    return next(
        iter(get_close_matches(name, [each for each in load_metrics() if each not in histograms], n=1, cutoff=_ALIKE)),
        "",
    )


def _check_matchers(check: _Check, node: Node, base: str, suffix: str) -> None:
    exporter, metric = exporter_of(base), load_metrics()[base]
    known = exporter.labels_of(base) | TARGET_LABELS[exporter.scraped]
    for matcher in node.expression.matchers.matchers:
        if matcher.name == "le" and suffix == "_bucket":
            _check_bound(check, matcher.value, base, metric)
        elif check.is_ours and matcher.name not in known and matcher.name != "__name__":
            own = ", ".join(sorted(exporter.labels_of(base))) or "none of its own"
            message = f"{base} has no label {matcher.name}; its labels: {own}"
            check.refuse("promql-label", matcher.name, message, f"remove the matcher {matcher.name}")


def _check_bound(check: _Check, value: str, base: str, metric: Metric) -> None:
    if value == "+Inf" or not metric.buckets:
        return
    written = {str(float(bound)) for bound in metric.buckets}
    if value in written:
        return
    bounds = ", ".join(sorted(written, key=float))
    message = f'{base} has no bucket le="{value}"; its bounds: {bounds}'
    try:
        near = min(written, key=lambda bound: abs(float(bound) - float(value)))
    except ValueError:
        near = next(iter(sorted(written, key=float)))
    check.refuse("promql-bucket", "le", message, f'le="{near}"')


def _check_absent(check: _Check, node: Node, name: str, metric: Metric) -> None:
    if metric.availability == "always":
        return
    if not any(is_kind(each, "Call") and each.func.name in ("absent", "absent_over_time") for each in node.around):
        return
    when = {
        "idle": "vanishes 20 s after the last request",
        "first": "does not exist before the first increment",
        "once": "vanishes 20 s after the start",
        "event": "exists only while something happens",
        "device": "exists only on nodes with the device",
    }[metric.availability]
    message = f"{name} {when}, so `absent` is true for a healthy service"
    check.refuse("promql-absent", name, message, "absent(ray_serve_application_status)")


def _check_type(check: _Check, node: Node, name: str, kind: str) -> None:
    functions = [each.func.name for each in node.around if is_kind(each, "Call")]
    if kind == "gauge":
        if used := next((each for each in functions if each in RATES), ""):
            check.refuse(
                "promql-rate", name, f"{used} of {name}, which is a gauge: it can decrease", f"delta({name}[5m])"
            )
        return
    if used := next((each for each in functions if each in DELTAS), ""):
        message = f"{used} of {name}, which is a counter: the result is wrong after a restart"
        check.refuse("promql-rate", name, message, f"increase({name}[5m])")
        return
    if not any(each in RATES | ANY_VALUE for each in functions) and not _has_no_value(node):
        message = f"{name} is a counter: its value is the count since a process started"
        check.refuse("promql-counter", name, message, f"rate({name}[5m])")


def _has_no_value(node: Node) -> bool:
    """Return whether the value does not matter: counted, multiplied by 0, or an operand of `and` or `unless`."""
    for index, each in enumerate(node.around):
        inner = node.around[index + 1] if index + 1 < len(node.around) else node.expression
        if is_kind(each, "AggregateExpr") and str(each.op) in COUNTS:
            return True
        if is_kind(each, "BinaryExpr") and _ignores(each, inner):
            return True
    return False


def _ignores(operation: Any, operand: Any) -> bool:
    operator = str(operation.op)
    if operator == "*":
        return any(is_kind(each, "NumberLiteral") and each.val == 0 for each in (operation.lhs, operation.rhs))
    if operator == "unless":
        # The value of a new series is its increase: blocks.increase.
        return True
    return operator == "and" and operation.rhs is operand


# -- operations ------------------------------------------------------------------------------------------------------


def _check_operation(check: _Check, node: Node) -> None:
    expression = node.expression
    if is_kind(expression, "AggregateExpr"):
        _check_mean(check, expression, str(expression.op), expression.expr)
        if expression.modifier is not None and str(expression.modifier.type).endswith("By"):
            _check_labels(check, expression.modifier.labels, expression.expr)
    if is_kind(expression, "Call"):
        if expression.func.name == "histogram_quantile":
            _check_le(check, expression)
        if expression.func.name in MEANS:
            _check_mean(check, expression, expression.func.name, *expression.args)
    modifier = expression.modifier if is_kind(expression, "BinaryExpr") else None
    if modifier is not None and modifier.matching is not None:
        for side in (expression.lhs, expression.rhs):
            _check_labels(check, modifier.matching.labels, side)
        one = expression.lhs if "OneToMany" in str(modifier.card) else expression.rhs
        _check_labels(check, modifier.group_labels or [], one)


def _check_mean(check: _Check, expression: Any, operator: str, *operands: Any) -> None:
    if operator not in MEANS:
        return
    for operand in operands:
        for node in walk(operand):
            if not is_kind(node.expression, "Call") or node.expression.func.name not in QUANTILES:
                continue
            if any(is_kind(each, "AggregateExpr") and str(each.op) in COUNTS for each in node.around):
                continue
            message = f"{operator} of quantiles is not a quantile: sum the buckets first, then take one quantile"
            fix = "histogram_quantile(0.95, sum by (le) (rate(ray_vllm_time_to_first_token_seconds_bucket[5m])))"
            check.refuse("promql-quantile", operator, message, fix)
            return


def _check_le(check: _Check, call: Any) -> None:
    single = set(_list_single_sides(call.args[1]))
    for node in walk(call.args[1]):
        if str(node.expression) in single:
            continue
        if is_kind(node.expression, "AggregateExpr") and node.expression.modifier is not None:
            modifier = node.expression.modifier
            keeps = "le" in modifier.labels if str(modifier.type).endswith("By") else "le" not in modifier.labels
        else:
            keeps = not is_kind(node.expression, "AggregateExpr")
        if not keeps:
            message = "histogram_quantile needs the label le, and the aggregation removes it"
            check.refuse("promql-quantile", "histogram_quantile", message, "sum by (le) (...)")
            return


def _list_single_sides(expression: Any) -> Iterator[str]:
    """Yield what `group_left` and `group_right` join to many series, which keep their own labels."""
    for node in walk(expression):
        modifier = node.expression.modifier if is_kind(node.expression, "BinaryExpr") else None
        if modifier is not None and "ManyToOne" in str(modifier.card):
            yield from (str(each.expression) for each in walk(node.expression.rhs))
        elif modifier is not None and "OneToMany" in str(modifier.card):
            yield from (str(each.expression) for each in walk(node.expression.lhs))


def _check_labels(check: _Check, labels: list[str], below: Any) -> None:
    """Refuse labels that the series below do not have. A label that only some lack is allowed: they have it empty."""
    available = find_labels(below) if check.is_ours else None
    for label in labels:
        if available is not None and label not in available:
            has = ", ".join(sorted(available)) or "none"
            message = f"the series that are combined have no label {label}; their labels: {has}"
            check.refuse("promql-label", label, message, f"remove {label}")
