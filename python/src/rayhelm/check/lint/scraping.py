"""`rayhelm lint` of how Prometheus finds pods: pods that are scraped twice, and series without a label of the queries.

Each chart has one way of scraping by its values. Objects of several releases, and objects that people wrote, are
checked here together: PodMonitors, ScrapeConfigs, configurations in ConfigMaps, and annotations.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from rayhelm.check.admission.manifests import Manifest
from rayhelm.check.lint.relabel import relabel, sanitize
from rayhelm.deploy.label_selectors import holds
from rayhelm.errors import Fix, Problem

__all__ = ["check_scraping"]

OWNERS = {"rayhelm.dev/service": "service", "rayhelm.dev/gateway": "gateway"}
"""Label of pods that Prometheus scrapes, and what has it."""
COPIED = ("rayhelm.dev/service", "rayhelm.dev/worker-group", "rayhelm.dev/tenant", "rayhelm.dev/gateway")
META = "__meta_kubernetes_pod_"
ANNOTATION = "prometheus.io/"
METRICS = "/metrics"


@dataclass(frozen=True)
class _Pod:
    """A pod template of a service or gateway."""

    owner: str
    """`service chat`."""
    role: str
    """Part of the owner that differs: head, or name of a worker group."""
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    ports: tuple[tuple[str, str, int], ...]
    """Container, name and number of each port."""
    manifest: Manifest

    @property
    def needed(self) -> dict[str, str]:
        """Labels that its series need, by the label of the pod they come from."""
        copied = {sanitize(label): label for label in COPIED if label in self.labels}
        return {"namespace": "", "pod": "", **copied}


@dataclass(frozen=True)
class _Scrape:
    """One port and path of a pod that an object lets Prometheus scrape."""

    manifest: Manifest
    pod: _Pod
    port: str
    path: str
    labels: Mapping[str, str]


def check_scraping(manifests: list[Manifest]) -> list[Problem]:
    """Return a problem for each object that scrapes what another one scrapes, or drops a label that queries need."""
    pods = [pod for each in manifests for pod in _find_pods(each)]
    scrapes = [scrape for each in manifests for scrape in _find_scrapes(each, pods)]
    return [*_find_missing_labels(scrapes), *_find_doubles(scrapes)]


def _find_missing_labels(scrapes: list[_Scrape]) -> Iterator[Problem]:
    """Yield one problem for each object and owner, with what its pods lack together."""
    found: dict[tuple[int, str], tuple[Manifest, dict[str, str]]] = {}
    for scrape in scrapes:
        missing = {name: label for name, label in scrape.pod.needed.items() if name not in scrape.labels}
        if missing:
            found.setdefault((id(scrape.manifest), scrape.pod.owner), (scrape.manifest, {}))[1].update(missing)
    for (_, owner), (manifest, missing) in found.items():
        names = ", ".join(missing)
        message = f"{_name(manifest)}: series of {owner} have no label {names}, and queries sum by it"
        yield _problem(manifest, message, _fix_labels(manifest, missing), "scrape-label")


def _fix_labels(manifest: Manifest, missing: Mapping[str, str]) -> Fix:
    """`missing` are the labels of pods by the labels of the series; empty for the namespace and the pod."""
    spec = _dict(manifest.item.get("spec"))
    if manifest.item["kind"] == "PodMonitor":
        copied = [*(spec.get("podTargetLabels") or []), *filter(None, missing.values())]
        return Fix(value={"spec": {"podTargetLabels": copied}})
    camel = manifest.item["kind"] == "ScrapeConfig"
    source, target = ("sourceLabels", "targetLabel") if camel else ("source_labels", "target_label")
    meta = {"namespace": "__meta_kubernetes_namespace", "pod": f"{META}name"}
    rules = [{target: name, source: [meta.get(name, f"{META}label_{name}")]} for name in missing]
    if not camel:
        return Fix(value={"relabel_configs": rules}, why="after the rules that are there")
    return Fix(value={"spec": {"relabelings": [*(spec.get("relabelings") or []), *rules]}})


def _find_doubles(scrapes: list[_Scrape]) -> Iterator[Problem]:
    first: dict[tuple[int, str, str, str], _Scrape] = {}
    seen = set()
    for scrape in scrapes:
        key = (id(scrape.pod.manifest), scrape.pod.role, scrape.port, scrape.path)
        before = first.setdefault(key, scrape)
        pair = (id(before.manifest), id(scrape.manifest), scrape.pod.owner)
        if before is scrape or pair in seen:
            continue
        seen.add(pair)
        message = (
            f"{_name(scrape.manifest)}: {scrape.pod.owner} is scraped twice at port {scrape.port}, path {scrape.path}: "
            f"{_name(before.manifest)} ({before.manifest.file}) scrapes it too, so every request counts twice"
        )
        fix = Fix("scraping", {"kind": "None"}, "in the values of one of the charts; remove an object of your own")
        yield _problem(scrape.manifest, message, fix, "scraped-twice")


def _problem(manifest: Manifest, message: str, fix: Fix, rule: str) -> Problem:
    line = manifest.lines.get(("spec",)) or manifest.lines.get(("data",)) or manifest.lines.get(())
    return Problem(message, "", manifest.file, line, fix, rule)


def _name(manifest: Manifest) -> str:
    return f"{manifest.item['kind']} {manifest.item['metadata'].get('name', '')}"


# Pods.


def _find_pods(manifest: Manifest) -> Iterator[_Pod]:
    spec = _dict(manifest.item.get("spec"))
    if manifest.item["kind"] == "RayService":
        cluster = _dict(spec.get("rayClusterConfig"))
        groups = [group for group in cluster.get("workerGroupSpecs") or [] if isinstance(group, dict)]
        yield from _read_pod(manifest, "head", _dict(cluster.get("headGroupSpec")).get("template"))
        for group in groups:
            yield from _read_pod(manifest, str(group.get("groupName", "")), group.get("template"))
    elif manifest.item["kind"] in ("Deployment", "StatefulSet", "DaemonSet"):
        yield from _read_pod(manifest, "", spec.get("template"))


def _read_pod(manifest: Manifest, role: str, template: Any) -> Iterator[_Pod]:
    about, spec = _dict(_dict(template).get("metadata")), _dict(_dict(template).get("spec"))
    labels = {str(key): str(value) for key, value in _dict(about.get("labels")).items()}
    owner = next((f"{what} {labels[label]}" for label, what in OWNERS.items() if label in labels), "")
    if not owner:
        return
    ports = tuple(
        (str(container.get("name")), str(port.get("name", "")), int(port.get("containerPort", 0)))
        for container in spec.get("containers") or []
        for port in container.get("ports") or []
    )
    annotations = {str(key): str(value) for key, value in _dict(about.get("annotations")).items()}
    namespace = str(manifest.item["metadata"].get("namespace", ""))
    yield _Pod(owner, role, namespace, labels, annotations, ports, manifest)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# What scrapes them.


def _find_scrapes(manifest: Manifest, pods: list[_Pod]) -> Iterator[_Scrape]:
    spec, namespace = _dict(manifest.item.get("spec")), str(manifest.item["metadata"].get("namespace", ""))
    match manifest.item["kind"]:
        case "PodMonitor":
            yield from _scrape_by_pod_monitor(manifest, spec, namespace, pods)
        case "ScrapeConfig":
            rules, path = spec.get("relabelings") or [], str(spec.get("metricsPath", METRICS))
            for discovery in spec.get("kubernetesSDConfigs") or []:
                yield from _scrape_by_rules(manifest, discovery, rules, path, pods)
        case "ConfigMap":
            for job in _list_jobs(manifest):
                rules, path = job.get("relabel_configs") or [], str(job.get("metrics_path", METRICS))
                for discovery in job.get("kubernetes_sd_configs") or []:
                    yield from _scrape_by_rules(manifest, discovery, rules, path, pods)
        case _:
            yield from (each for pod in pods if pod.manifest is manifest for each in _scrape_by_annotations(pod))


def _scrape_by_pod_monitor(
    manifest: Manifest, spec: dict[str, Any], namespace: str, pods: list[_Pod]
) -> Iterator[_Scrape]:
    where = _dict(spec.get("namespaceSelector"))
    names = where.get("matchNames") or [namespace]
    for pod in pods:
        if not (where.get("any") or pod.namespace in names) or not _selects(_dict(spec.get("selector")), pod.labels):
            continue
        for endpoint in spec.get("podMetricsEndpoints") or []:
            for container, name, number in pod.ports:
                if endpoint.get("port") != name and endpoint.get("portNumber") != number:
                    continue
                labels = {"namespace": pod.namespace, "pod": "x", "container": container, "endpoint": name}
                copied = [label for label in spec.get("podTargetLabels") or [] if label in pod.labels]
                labels |= {sanitize(label): pod.labels[label] for label in copied}
                result = relabel(_discover(pod, container, name, number) | labels, endpoint.get("relabelings") or [])
                if result is not None:
                    yield _Scrape(manifest, pod, name, str(endpoint.get("path", METRICS)), result)


def _scrape_by_rules(
    manifest: Manifest, discovery: dict[str, Any], rules: list[dict[str, Any]], path: str, pods: list[_Pod]
) -> Iterator[_Scrape]:
    if str(discovery.get("role", "")).lower() != "pod":
        return
    names = _dict(discovery.get("namespaces")).get("names")
    for pod in pods:
        for container, name, number in pod.ports:
            if names and pod.namespace not in names:
                continue
            if (labels := relabel(_discover(pod, container, name, number), rules)) is not None:
                yield _Scrape(manifest, pod, name, labels.get("__metrics_path__", path), labels)


def _scrape_by_annotations(pod: _Pod) -> Iterator[_Scrape]:
    """The job `kubernetes-pods` of Prometheus' community chart, which copies all labels of a pod."""
    if pod.annotations.get(f"{ANNOTATION}scrape") != "true":
        return
    labels = {"namespace": pod.namespace, "pod": "x"} | {sanitize(key): value for key, value in pod.labels.items()}
    path, port = pod.annotations.get(f"{ANNOTATION}path", METRICS), pod.annotations.get(f"{ANNOTATION}port", "")
    for _, name, number in pod.ports:
        if port in ("", str(number)):
            yield _Scrape(pod.manifest, pod, name, path, labels)


def _discover(pod: _Pod, container: str, port: str, number: int) -> dict[str, str]:
    """Return the labels before relabeling."""
    labels = {f"{META}label_{sanitize(key)}": value for key, value in pod.labels.items()}
    present = {f"{META}labelpresent_{sanitize(key)}": "true" for key in pod.labels}
    annotations = {f"{META}annotation_{sanitize(key)}": value for key, value in pod.annotations.items()}
    return {
        **labels,
        **present,
        **annotations,
        "__meta_kubernetes_namespace": pod.namespace,
        f"{META}name": "x",
        f"{META}phase": "Running",
        f"{META}container_name": container,
        f"{META}container_port_name": port,
        f"{META}container_port_number": str(number),
    }


def _list_jobs(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """List the scrape configurations in a ConfigMap."""
    for text in _dict(manifest.item.get("data")).values():
        if "scrape_configs" not in str(text):
            continue
        try:
            config = yaml.safe_load(str(text))
        except yaml.YAMLError:
            continue
        yield from (job for job in _dict(config).get("scrape_configs") or [] if isinstance(job, dict))


def _selects(selector: dict[str, Any], labels: Mapping[str, str]) -> bool:
    wanted = _dict(selector.get("matchLabels"))
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        holds(expression, labels) for expression in selector.get("matchExpressions") or []
    )
