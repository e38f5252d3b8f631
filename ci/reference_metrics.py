"""Reference pages of metrics and queries, from `data/metrics` and the registry of queries."""

from collections.abc import Iterator

from rayhelm.facts.metrics import Exporter, Metric, load_exporters
from rayhelm.observe.queries import Query, Scope, all_queries

__all__ = ["metrics_page", "queries_page", "replaced_page"]

WHEN = {
    "always": "always",
    "first": "from the first increment on",
    "idle": "until 20 s after the last request",
    "once": "20 s after the start",
    "event": "while it holds",
    "device": "with the device",
}
SCRAPED = {
    "service": "pods of chart `ray-service`",
    "gateway": "pods of chart `gateway`",
    "operator": "the operator",
    "node": "the exporter on each node",
    "cluster": "kube-state-metrics or the kubelet",
    "prometheus": "Prometheus writes them",
    "rules": "recording rules of chart `platform` write them",
}


def metrics_page() -> str:
    """One table for each exporter."""
    exporters = load_exporters()
    total = sum(len(exporter.metrics) for exporter in exporters.values())
    lines = [
        "# Metrics",
        "",
        f"The {total} metrics that queries may use. Labels that the scrape adds are not listed: `namespace`, `pod`,",
        "`rayhelm_dev_service`. *Seen*: a live scrape had it; otherwise only the source code of the exporter has it.",
        "The bounds of histograms are in `python/src/rayhelm/data/metrics`.",
        "",
    ]
    for name, exporter in exporters.items():
        lines += [f"## {name}", "", *exporter_lines(exporter), ""]
    return "\n".join(lines).rstrip() + "\n"


def exporter_lines(exporter: Exporter) -> Iterator[str]:
    labels = ", ".join(f"`{label}`" for label in exporter.labels) or "none of their own"
    yield f"Metrics of {exporter.about}. Scraped: {SCRAPED[exporter.scraped]}. Labels of all: {labels}."
    if exporter.approximate_sums:
        yield "Ray approximates `_sum` from the buckets: use quantiles, not means."
    yield ""
    yield "| metric | type | unit | labels | when | seen | meaning |"
    yield "|---|---|---|---|---|---|---|"
    for name, metric in exporter.metrics.items():
        yield metric_row(name, metric)


def metric_row(name: str, metric: Metric) -> str:
    labels = ", ".join([*metric.labels, *(f"not {label}" for label in metric.lacks)])
    where = f" Series: `{metric.where}`." if metric.where else ""
    needs = f" Needs {metric.needs}." if metric.needs else ""
    meaning = cell(f"{metric.meaning}{needs}{where}")
    seen = "yes" if metric.seen else ""
    return f"| `{name}` | {metric.type} | {metric.unit} | {labels} | {WHEN[metric.availability]} | {seen} | {meaning} |"


def queries_page() -> str:
    """Every query with its PromQL for rules."""
    queries = all_queries()
    lines = [
        "# Queries",
        "",
        f"The {len(queries)} queries of dashboards, rules and commands, as PromQL for all services with the default",
        "window. Results are in seconds, bytes and other base units; ratios are from 0 to 1. *Idle* is the result",
        "without requests: `zero`, `no data` (a ratio or quantile of nothing), or the usual `value`.",
        "",
    ]
    subject = ""
    for name, query in queries.items():
        if name.partition(".")[0] != subject:
            subject = name.partition(".")[0]
            lines += [f"## {subject}", ""]
        lines += [*query_lines(query), ""]
    return "\n".join(lines).rstrip() + "\n"


def query_lines(query: "Query[...]") -> Iterator[str]:
    yield f"### {query.name}"
    yield ""
    yield f"{' '.join(query.description.split())} Unit: {query.unit}. Idle: {query.idle}."
    yield ""
    yield "```promql"
    yield query(Scope())
    yield "```"


def replaced_page() -> str:
    """Names of old articles, and what replaces them."""
    lines = [
        "# Metric names that do not exist",
        "",
        "Articles and dashboards name these metrics. The supported versions do not export them, so a panel or an alert",
        "with one is always empty, without an error. `rayhelm lint` reports them in values and in rule files.",
        "",
        "| name | use instead | why |",
        "|---|---|---|",
    ]
    for exporter in load_exporters().values():
        for name, replacement in exporter.absent.items():
            use = ", ".join(f"`{each}`" for each in replacement.use)
            lines.append(f"| `{name}` | {use} | {cell(replacement.why)} |")
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """Text on one line of a table; angle brackets and bars are escaped outside of code."""
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    return "`".join(part if inside % 2 else part.replace("<", "&lt;") for inside, part in enumerate(parts))
