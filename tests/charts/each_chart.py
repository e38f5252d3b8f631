"""The charts, a row each: what the tests of all of them know of one."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from charts import kit
from charts.kit import EXAMPLES, HELMS, VALUES, example, over, parsed
from rayhelm.deploy.charts.helm import charts_dir, render
from rayhelm.deploy.charts.models import CHARTS as MODELS
from rayhelm.deploy.charts.rules import Rule, rules
from rayhelm.deploy.charts.shape import keys
from rayhelm.deploy.values.platform.policy_catalog import load_policy_catalog
from rayhelm.deploy.values.ray_service.engine import Engine
from rayhelm.errors import FleetError, Problem
from rayhelm.facts.closed import Closed

__all__ = ["CHARTS", "Chart", "Values", "chart_of", "named", "options_of", "replaced"]

Values = dict[str, Any]
MODEL = "serve.applications.chat.models.llama-8b"


@dataclass(frozen=True)
class Chart:
    """One chart."""

    name: str
    release: str
    namespace: str
    """Of the release."""
    minimal: str
    """Name of the example with the smallest values."""
    shows: frozenset[str]
    """Kinds that the smallest values of the README make."""
    settings: tuple[str, ...]
    """Numbers, and texts that look like some, as `--set` takes them."""
    walked: frozenset[str] = frozenset()
    """Keys that templates walk through, and do not name."""
    apart: str = ""
    """Folder of templates whose objects are golden elsewhere."""
    needs_a_choice: frozenset[str] = frozenset()
    """Rules whose fix has words to fill in, takes several steps, or is one of several ways."""

    def __str__(self) -> str:
        return self.name

    @property
    def folder(self) -> Path:
        return charts_dir() / self.name

    @property
    def model(self) -> type[Closed]:
        return MODELS[self.name]

    @property
    def examples(self) -> list[str]:
        if self.name == "ray-service":
            return EXAMPLES
        return sorted(f"{self.name}/{path.stem}" for path in (VALUES / self.name).glob("*.yaml"))

    @cached_property
    def rules(self) -> dict[str, Rule]:
        return rules(self.name)

    @cached_property
    def templates(self) -> str:
        """Text of all templates that a person wrote."""
        return "\n".join(path.read_text() for path in sorted(self.folder.rglob("templates/**/*")) if path.is_file())

    @property
    def readme(self) -> str:
        return (self.folder / "README.md").read_text()

    def smallest(self) -> Values:
        return example(self.minimal)

    def text(self, values: Values, **options: Any) -> str:
        return render(self.name, self.release, self.namespace, values, **options)

    def objects(self, values: Values, helm: str = "4", **options: Any) -> list[kit.Object]:
        return parsed(self.text(values, helm=HELMS[helm], **options))

    def refused(self, name: str, bad: Values, helm: str = "4") -> Problem:
        """What is said of values that break a rule, with the operator that the rule is for. Raises where they pass."""
        rule = self.rules[name]
        version = rule.until or rule.since
        overlay = over({"kuberay": {"version": version}}, bad) if version else bad
        with pytest.raises(FleetError) as caught:
            self._over_the_smallest(overlay, rule.release, helm, options_of(rule))
        return caught.value.problems[0]

    def broken(self, overlay: Values, options: tuple[str, ...] = ()) -> str:
        """The rule that is broken first, if any."""
        try:
            self._over_the_smallest(overlay, options=options)
        except FleetError as error:
            return error.problems[0].rule or "schema"
        return ""

    def _over_the_smallest(
        self, overlay: Values, release: str = "", helm: str = "4", options: tuple[str, ...] = ()
    ) -> None:
        kit.rendered(
            overlay, chart=self.name, base=self.minimal, release=release or self.release,
            namespace=self.namespace, helm=helm, options=options,
        )  # fmt: skip


def options_of(rule: Rule) -> tuple[str, ...]:
    """The options of helm with which the bad values break the rule."""
    return ("--kube-version", f"{rule.kubernetes}.0") if rule.kubernetes else ()


def named(model: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every key as its path and its last part."""
    for key in keys(model):
        yield f"{path}{key.name}", key.name
        if below := key.section or key.entry:
            yield from named(below, f"{path}{key.name}.")


REMOVED = ("pod-label", "pod-template", "pod-annotation", "pod-security-context", "common-label", "common-annotation")
"""Rules whose fix leaves out a key of a map, which a merge does not remove."""

CHARTS = [
    Chart(
        name="ray-service",
        release="chat",
        namespace="models",
        minimal="minimal",
        shows=frozenset({"RayService", "NetworkPolicy", "PersistentVolumeClaim"}),
        settings=(
            f"{MODEL}.autoscaling.maxReplicas=1",
            f"{MODEL}.autoscaling.initialReplicas=2",
            "serve.applications.chat.ingress.minReplicas=2",
            f"{MODEL}.engine.maxNumSeqs=64",
            f"{MODEL}.engine.gpuMemoryUtilization=1",
            f"{MODEL}.gpuFraction=1",
            f"{MODEL}.gracefulShutdownSeconds=60",
            "workerGroups.gpu.maxReplicas=3",
            "workerGroups.gpu.gpu.count=2",
            "upgrade.deletionDelaySeconds=900",
        ),
        walked=frozenset(field.alias or name for name, field in Engine.model_fields.items()),
        needs_a_choice=frozenset(
            {
                *REMOVED,
                "engine-extra",
                "adapter-duplicate",
                "reserved-env",
                "resource-name",
                "spread-replica",
                "annotation-reserved",
                "scrape-annotation",
                "application-duplicate",
                "model-id-duplicate",
                "model-image-kubernetes",
            }
        ),
    ),
    Chart(
        name="gateway",
        release="main-gateway",
        namespace="models",
        minimal="gateway/minimal",
        shows=frozenset({"ConfigMap", "Deployment", "Service", "NetworkPolicy"}),
        settings=(
            "limits.bodyBytes=70000",
            "limits.connections=100",
            "tenants.acme.requestsPerMinute=7",
            "tenants.acme.concurrency=9",
            "autoscaling.minReplicas=3",
            "models.llama-8b.versions.stable.weight=100",
            "models.llama-8b.versions.stable.endpoints.here.port=8100",
            "timeouts.keyRefreshSeconds=1",
            "health.intervalSeconds=3",
            "drain.seconds=2000",
            "resources.limits.cpu=1",
            "resources.limits.memory=4294967296",
        ),
        needs_a_choice=frozenset({"weights-sum", "route-duplicate", "scrape-annotation", *REMOVED}),
    ),
    Chart(
        name="tenant",
        release="research",
        namespace="tenants",
        minimal="tenant/minimal",
        shows=frozenset({"Namespace", "ResourceQuota", "RoleBinding"}),
        settings=(
            "quota.pods.baseline=7",
            "quota.objects.loadBalancers=2",
            "podSecurity.version=v1.36",
            "namespace.name=other",
        ),
        walked=frozenset({"groups", "users", "serviceAccounts", "cpu", "memory"}),
        needs_a_choice=frozenset(
            {"subject-reserved", "namespace-release", "label-reserved", "common-label", "common-annotation"}
        ),
    ),
    Chart(
        name="platform",
        release="platform",
        namespace="rayhelm-system",
        minimal="platform/minimal",
        shows=frozenset({"PriorityClass"}),
        settings=("priorityClasses.head.value=1500000", "priorityClasses.batch.value=7"),
        apart="templates/policies/",
        walked=frozenset(
            {to_camel(name.replace("-", "_")) for name in load_policy_catalog()}
            | {name for about in load_policy_catalog().values() for name in about.lists}
        ),
        needs_a_choice=frozenset(
            {"pool-name", "mig-profile", "metric-exporter", "rules-alert", "rules-label", *REMOVED}
        ),
    ),
    Chart(
        name="argocd",
        release="acme",
        namespace="argocd",
        minimal="argocd/minimal",
        shows=frozenset({"AppProject", "Application"}),
        settings=(
            "sync.retry.limit=9",
            "operators.kuberay.version=17",
            "repository.revision=20261123",
            "charts.version=2",
        ),
        needs_a_choice=frozenset({"operator-name", "release-annotation", "common-label", "common-annotation"}),
    ),
]
"""A new chart is a new row."""


def replaced(values: Values, fix: Values) -> Values:
    """Values in which a fix takes the place of the last section that both have."""
    inside = {key for key, below in fix.items() if isinstance(below, dict) and set(below) & set(values.get(key, {}))}
    return {**values, **{key: replaced(values[key], fix[key]) if key in inside else fix[key] for key in fix}}


def chart_of(name: str) -> Chart:
    return next(chart for chart in CHARTS if chart.name == name)
