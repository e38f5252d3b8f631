"""Which series a query reads: clusters, namespaces, services, models, tenants."""

import re
from dataclasses import dataclass
from typing import Self

from rayhelm.facts.metrics import exporter_of, load_metrics
from rayhelm.observe.queries.labels import GATEWAY_LABEL, OWNER_LABEL, SERVICE_LABEL, TARGET_LABELS

__all__ = ["Scope"]


@dataclass(frozen=True)
class Scope:
    """Matchers of a query, each as operator and value: `=~"$service"`. An empty one matches everything.

    `Scope()` is for rules, `Scope.dashboard()` for panels, `Scope.of(service="chat")` for one service.
    """

    cluster: str = ""
    namespace: str = ""
    service: str = ""
    model: str = ""
    tenant: str = ""
    """Tenant that sends requests; only metrics of the gateway have it."""
    owner: str = ""
    """Tenant that owns the service."""
    gateway: str = ""
    session: str = ""
    """Ray cluster, by Ray's `SessionName`: during an upgrade a service has two."""
    text: str = ""
    """Matchers as text, for templates of other programs: `<<.LabelMatchers>>`."""

    @classmethod
    def dashboard(cls) -> Self:
        """Variables of a dashboard. Their value for All has to be `.*`, which also matches a missing label."""
        return cls(
            cluster='=~"$cluster"',
            namespace='=~"$namespace"',
            service='=~"$service"',
            model='=~"$model"',
            tenant='=~"$tenant"',
        )

    @classmethod
    def of(cls, **values: str) -> Self:
        """Exact values: `Scope.of(namespace="search", service="chat")`."""
        return cls(**{name: f"={quoted(value)}" for name, value in values.items()})

    def matchers(self, name: str) -> list[str]:
        """Matchers for a metric of the catalog: the scope's, as far as the metric has the labels, and the metric's
        `where`.

        Raises KeyError for a metric that the catalog does not have.
        """
        exporter, metric = exporter_of(name), load_metrics()[name]
        own = exporter.labels_of(name)
        available = own | TARGET_LABELS[exporter.scraped]
        wanted = {
            "cluster": self.cluster,
            # The namespace of a GPU's series is the exporter's or the pod's. `gpu` joins the pods.
            "namespace": "" if exporter.scraped == "node" else self.namespace,
            SERVICE_LABEL: self.service,
            OWNER_LABEL: self.owner,
            GATEWAY_LABEL: self.gateway,
            "SessionName": self.session,
            "model_name": self.model,
            "tenant": self.tenant,
        }
        if name.startswith("kuberay_service_"):
            wanted["name"] = self.service
        if exporter.scraped == "prometheus":
            # Targets of all kinds have `up`; a query names the ones that it means.
            wanted = {"cluster": self.cluster}
        found = [f"{label}{value}" for label, value in wanted.items() if value and label in available]
        if self.model and "proxy" in own and metric.where.startswith("proxy=~"):
            found.append(f'proxy=~"({self._model_pattern()}):.+"')
        return [*([self.text] if self.text else []), *found, *([metric.where] if metric.where else [])]

    def _model_pattern(self) -> str:
        """The model as a regular expression: a variable as it is, a name with its special characters escaped."""
        if self.model.startswith("=~"):
            return self.model[3:-1]
        return re.sub(r"([.+*?()\[\]{}|^$])", r"\\\\\1", self.model[2:-1])


def quoted(value: str) -> str:
    """A string of PromQL."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
