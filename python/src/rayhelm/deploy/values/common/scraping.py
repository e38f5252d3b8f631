"""How Prometheus finds the pods of a release."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Values
from rayhelm.deploy.values.common.labels import Labels

__all__ = ["Interval", "Relabeling", "Scraping"]

LabelName = Annotated[str, Field(pattern="^_?[a-zA-Z][a-zA-Z0-9_]*$")]
"""Not `__address__`: a release scrapes its own pods only."""
Interval = Annotated[str, Field(pattern=r"^[0-9]+(ms|s|m)$")]


class Relabeling(Values):
    """A relabeling rule of the Prometheus operator."""

    action: Literal["replace", "keep", "drop", "hashmod", "lowercase", "uppercase"] | None = None
    """What the rule does; `replace` when absent. Rules that copy or drop labels by a pattern are refused: queries need
    the labels of the chart."""
    source_labels: list[Annotated[str, Field(pattern="^[a-zA-Z_][a-zA-Z0-9_]*$")]] | None = None
    """Labels whose values are joined and compared with `regex`."""
    separator: str | None = None
    """Text between these values."""
    target_label: LabelName | None = None
    """Label that gets the result, none with `__` in front."""
    regex: str | None = None
    """Regular expression for the whole text."""
    replacement: str | None = None
    """Value of `targetLabel`."""
    modulus: Annotated[int, Field(ge=1)] | None = None
    """Divisor for `hashmod`."""


class Scraping(Values):
    """How Prometheus finds the pods. Every kind gives the series the same labels."""

    kind: Literal["None", "PodMonitor", "ScrapeConfig", "Annotations"] = "None"
    """`PodMonitor` and `ScrapeConfig` are objects of the Prometheus operator. `Annotations` are `prometheus.io/scrape`
    of the pods, which name one port and one path of a pod. `None`: nothing, or the ConfigMap of the chart `platform`.
    With two kinds at once every request would count twice."""
    labels: Labels = {}
    """Labels by which your Prometheus selects the object."""
    interval: Interval = "15s"
    """Time between scrapes. Keep it below 20 s: vLLM drops its gauges 20 s after the engine becomes idle. With
    `Annotations` the configuration of Prometheus sets it."""
    relabelings: list[Relabeling] = []
    """Further rules for the labels of targets, after those of the chart. Only with `PodMonitor` and `ScrapeConfig`."""
    metric_relabelings: list[Relabeling] = []
    """The same for each scraped series."""
