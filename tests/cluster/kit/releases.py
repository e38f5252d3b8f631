"""A release of a chart in a namespace of its own, and what the tests of releases know of each chart."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cluster.kit.cluster import Cluster
from cluster.kit.helm import Helm
from cluster.kit.place import Testbed

__all__ = ["Chart", "Release", "other_than", "released"]

Values = dict[str, Any]


@dataclass(frozen=True)
class Chart:
    """What makes a chart's releases unlike others."""

    name: str
    values: Callable[[Testbed], Values]
    edits: Mapping[str, Callable[[Values], Values]]
    """Values edits by what they do; the first is made in place."""
    becomes_ready: Callable[["Release"], object]
    shows: Callable[["Release"], Any]
    """What runs: it is another after each edit, and as before after its rollback."""
    says: Callable[["Release"], str]
    """A line that NOTES has to have."""
    outlives: tuple[str, ...]
    """`<kind> <name>` of what stays when the release goes; a release is called `chat`."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Release:
    """One release, and the Helm that looks after it."""

    chart: Chart
    helm: Helm
    cluster: Cluster
    namespace: str
    name: str = "chat"

    @property
    def values(self) -> Values:
        """Those of the install."""
        return self.chart.values(self.cluster.place)

    def upgrade(self, values: Values | None = None, *options: str, helm: Helm | None = None) -> str:
        """`helm upgrade --install`; what Helm says."""
        reported = self.values if values is None else values
        return (helm or self.helm).install(self.chart.name, self.name, self.namespace, reported, *options)

    def becomes_ready(self) -> None:
        self.chart.becomes_ready(self)

    def shows(self) -> Any:
        return self.chart.shows(self)

    @property
    def revision(self) -> int:
        return int(self.helm.revisions(self.name, self.namespace)[-1]["revision"])


def other_than(helm: Helm) -> Helm:
    """Helm 3 for Helm 4, and Helm 4 for Helm 3."""
    return Helm.of_major("3" if helm.major == "4" else "4", helm.kubeconfig)


@contextmanager
def released(chart: Chart, helm: Helm, cluster: Cluster) -> Iterator[Release]:
    """Installed, and ready, in a namespace of its own."""
    with cluster.namespace() as namespace:
        release = Release(chart, helm, cluster, namespace)
        release.upgrade()
        release.becomes_ready()
        yield release
