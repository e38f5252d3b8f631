"""Parse PromQL: walk through an expression, and find the metrics and labels of its result."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rayhelm.errors import MissingError
from rayhelm.facts.metrics import SUFFIXES, exporter_of, load_metrics
from rayhelm.observe.queries.labels import TARGET_LABELS

__all__ = [
    "QUANTILES",
    "SUFFIXES",
    "Node",
    "find_labels",
    "find_metric",
    "is_kind",
    "parse",
    "replace_placeholders",
    "walk",
]

QUANTILES = {"histogram_quantile", "quantile_over_time"}

_VARIABLE = r"\$(?:\w+|\{\w+(?::\w+)?\})"
_PLACEHOLDERS = (
    (re.compile(r"\$\{?__(?:rate_interval|interval|range)\}?"), "5m"),
    (re.compile(rf"(?<=\[){_VARIABLE}(?=[\]:])|(?<=:){_VARIABLE}(?=\])|(?<=offset ){_VARIABLE}"), "5m"),
    (re.compile(r"<<\.LabelMatchers>>"), 'namespace="x"'),
    (re.compile(r"<<\.GroupBy>>"), "namespace"),
)
"""Variables of Grafana and placeholders of the Prometheus adapter, with a value that is valid there."""
_NUMBER = re.compile(rf"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|{_VARIABLE}")
"""A text in quotes, where a variable is a part of the text, or a variable, which is a number then."""


@dataclass(frozen=True)
class Node:
    """An expression, and the expressions around it from the outermost on."""

    expression: Any
    around: tuple[Any, ...]


def replace_placeholders(text: str) -> str:
    """Replace placeholders of Grafana and of the Prometheus adapter by values that Prometheus can parse."""
    for pattern, value in _PLACEHOLDERS:
        text = pattern.sub(value, text)
    return _NUMBER.sub(lambda found: found[1] or "1", text)


def parse(text: str) -> Any:
    """The parsed query, or the parser's message."""
    try:
        import promql_parser
    except ImportError as error:
        raise MissingError("promql-parser is not installed", "pip install promql-parser") from error
    try:
        return promql_parser.parse(text)
    except ValueError as error:
        return str(error)


def walk(expression: Any, around: tuple[Any, ...] = ()) -> Iterator[Node]:
    """Every expression below one, in the order of the text."""
    yield Node(expression, around)
    for child in _children(expression):
        yield from walk(child, (*around, expression))


def _children(expression: Any) -> list[Any]:
    if is_kind(expression, "BinaryExpr"):
        return [expression.lhs, expression.rhs]
    if is_kind(expression, "Call"):
        return list(expression.args)
    if is_kind(expression, "MatrixSelector"):
        return [expression.vector_selector]
    if is_kind(expression, "AggregateExpr"):
        return [each for each in (expression.param, expression.expr) if each is not None]
    inner = getattr(expression, "expr", None)
    return [inner] if inner is not None else []


def is_kind(expression: Any, kind: str) -> bool:
    """Compare the type of an expression with the name of a class of promql_parser."""
    return type(expression).__name__ == kind


def find_metric(name: str) -> tuple[str, str] | None:
    """Name in the catalog and suffix of a series; None if the catalog does not have it."""
    metrics = load_metrics()
    if name in metrics and metrics[name].type != "histogram":
        return name, ""
    for suffix in SUFFIXES:
        base = name.removesuffix(suffix)
        if base != name and base in metrics and metrics[base].type == "histogram":
            return base, suffix
    return None


def find_labels(expression: Any) -> frozenset[str] | None:
    """Labels that the series of an expression may have; None if that is unknown."""
    if is_kind(expression, "VectorSelector"):
        return _labels_of_series(expression.name or "")
    if is_kind(expression, "AggregateExpr"):
        return _labels_of_aggregation(expression)
    if is_kind(expression, "BinaryExpr"):
        return _labels_of_operation(expression)
    if is_kind(expression, "Call"):
        return _labels_of_call(expression)
    children = _children(expression)
    return find_labels(children[0]) if children else None


def _labels_of_series(name: str) -> frozenset[str] | None:
    found = find_metric(name)
    if not found:
        return None
    exporter = exporter_of(found[0])
    bound = {"le"} if found[1] == "_bucket" else set()
    return exporter.labels_of(found[0]) | TARGET_LABELS[exporter.scraped] | bound


def _labels_of_aggregation(expression: Any) -> frozenset[str] | None:
    inner, modifier = find_labels(expression.expr), expression.modifier
    if str(expression.op) in ("topk", "bottomk", "limitk") and modifier is None:
        return inner
    if inner is None or modifier is None:
        return None if inner is None else frozenset()
    named = frozenset(modifier.labels)
    return inner & named if str(modifier.type).endswith("By") else inner - named


def _labels_of_operation(expression: Any) -> frozenset[str] | None:
    left, right, operator = find_labels(expression.lhs), find_labels(expression.rhs), str(expression.op)
    if left is None or right is None:
        # One side is a number, or unknown.
        return left or right if _is_number(expression.lhs) or _is_number(expression.rhs) else None
    if operator == "or":
        return left | right
    if operator in ("and", "unless"):
        return left
    modifier = expression.modifier
    cardinality = str(modifier.card) if modifier is not None else ""
    if "ManyToOne" in cardinality or "OneToMany" in cardinality:
        return (left if "ManyToOne" in cardinality else right) | frozenset(modifier.group_labels or ())
    if modifier is not None and modifier.matching is not None:
        named = frozenset(modifier.matching.labels)
        return named if str(modifier.matching.type).endswith(("On", "Include")) else left - named
    return left


def _is_number(expression: Any) -> bool:
    if is_kind(expression, "ParenExpr") or is_kind(expression, "UnaryExpr"):
        return _is_number(expression.expr)
    return is_kind(expression, "NumberLiteral") or (
        is_kind(expression, "Call") and expression.func.name in ("time", "scalar", "vector")
    )


def _labels_of_call(expression: Any) -> frozenset[str] | None:
    name, arguments = expression.func.name, list(expression.args)
    if name in ("time", "vector", "scalar") or not arguments:
        return None
    inner = find_labels(arguments[1] if name in QUANTILES else arguments[0])
    if inner is None:
        return None
    if name in ("label_replace", "label_join"):
        return inner | {arguments[1].val}
    return inner - {"le"} if name == "histogram_quantile" else inner
