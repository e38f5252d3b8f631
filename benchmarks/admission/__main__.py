"""python -m admission [--kubeconfig FILE] [--write FILE]

Latency of creating objects with and without the policies, as a ratio. Two namespaces of chart tenant differ only in the
policies. Requests alternate between both, are dry runs in the name of a member, and use one connection.
"""

import argparse
import datetime
import json
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import requests
import yaml
from pykube import HTTPClient, KubeConfig  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

from rayhelm.check.admission.policy import PLURALS
from rayhelm.deploy.charts.helm import template
from rayhelm.live.cluster.kubectl import Kubectl
from testbed.control_plane import down, home, up
from testbed.tools import program

Object = dict[str, Any]

ROOT = Path(__file__).parents[2]
POLICIES = sorted((ROOT / "policies").glob("*/policy.yaml"))
VALUES = ROOT / "tests/charts/values"
MEMBER = "bench-member"
NAMESPACES = {"without": "bench-without", "with": "bench-with"}
KINDS = ("RayService", "Service", "NetworkPolicy", "Pod")
RIGHTS: list[Object] = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": MEMBER},
        "rules": [{"apiGroups": ["*"], "resources": sorted({*PLURALS.values()} - {"namespaces"}), "verbs": ["create"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": MEMBER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": MEMBER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": MEMBER}],
    },
]
POD_OF_RAY = {"containers": [{"name": "main", "image": "rayproject/ray-llm@sha256:" + "4f" * 32}]}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-admission", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, help="a cluster of ci/control-plane; one is started without it")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=40, help="by round, kind and namespace")
    parser.add_argument("--write", type=Path, help="file for the result as JSON")
    options = parser.parse_args()
    with ExitStack() as stack:
        kubeconfig = options.kubeconfig or stack.enter_context(start_control_plane())
        found = measure(kubeconfig, options.rounds, options.requests)
    result = {
        "command": "make bench-admission",
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "policies": len(POLICIES),
        "rounds": options.rounds,
        "requests": options.requests,
        "kinds": found,
    }
    print_result(result)
    if options.write:
        options.write.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def measure(kubeconfig: Path, rounds: int, count: int) -> dict[str, Any]:
    """Return the figures of each kind: medians of both, in milliseconds, and the ratio of each round."""
    kubectl = Kubectl(program("kubectl"), kubeconfig)
    with policies_in_one_namespace(kubectl), API(kubeconfig) as api:
        objects = {item["kind"]: item for item in list_objects()}
        for kind in KINDS:
            api.wait_for_policies(objects[kind])
        times: dict[str, dict[str, list[list[float]]]] = {kind: {"without": [], "with": []} for kind in KINDS}
        for _ in range(rounds):
            for kind in KINDS:
                seconds: dict[str, list[float]] = {"without": [], "with": []}
                for _ in range(count):
                    for name, namespace in NAMESPACES.items():
                        seconds[name].append(api.create(objects[kind], namespace))
                for name in NAMESPACES:
                    times[kind][name].append(seconds[name])
    return {kind: summarize(times[kind]) for kind in KINDS}


def summarize(times: dict[str, list[list[float]]]) -> dict[str, Any]:
    medians = {name: [1000 * statistics.median(one) for one in times[name]] for name in times}
    ratios = sorted(high / low for high, low in zip(medians["with"], medians["without"], strict=True))
    return {
        "without_ms": round(statistics.median(medians["without"]), 2),
        "with_ms": round(statistics.median(medians["with"]), 2),
        "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
    }


def read_values(name: str) -> Object:
    return dict(yaml.safe_load((VALUES / f"{name}.yaml").read_text()))


@contextmanager
def start_control_plane() -> Iterator[Path]:
    """Start a control plane for this run, and yield its kubeconfig."""
    place = home(f"bench-{os.getpid()}")
    try:
        yield up(place, say=lambda line: None).home.kubeconfig
    finally:
        down(place)


def list_objects() -> Iterator[Object]:
    """Yield objects that the charts render for the smallest values, and a pod."""
    values = {**read_values("minimal"), "kuberay": {"version": "1.6.2"}, "tenant": NAMESPACES["with"]}
    for item in template("ray-service", "minimal", NAMESPACES["with"], values):
        for group in item["spec"]["rayClusterConfig"]["workerGroupSpecs"] if item["kind"] == "RayService" else ():
            group["template"]["spec"]["priorityClassName"] = "rayhelm-workers"
        if item["kind"] in KINDS and item["metadata"].get("namespace") in (None, NAMESPACES["with"]):
            yield item
    metadata = {"name": "pod"}
    yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": POD_OF_RAY}
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "service"},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "x"}},
    }


@contextmanager
def policies_in_one_namespace(kubectl: Kubectl) -> Iterator[None]:
    """Make both namespaces, and bind the policies to one of them."""
    objects = [*RIGHTS]
    for name in NAMESPACES.values():
        for item in template("tenant", name, "bench", read_values("tenant/minimal")):
            if item["kind"] == "Namespace":
                labels = {
                    key: value
                    for key, value in item["metadata"]["labels"].items()
                    if not key.startswith("pod-security.kubernetes.io/enforce")
                }
                notes = {
                    **item["metadata"]["annotations"],
                    "rayhelm.dev/pod-security-reason": "policies alone judge here",
                }
                objects.append({**item, "metadata": {**item["metadata"], "labels": labels, "annotations": notes}})
    for file in POLICIES:
        found, binding = yaml.safe_load_all(file.read_text())
        name = f"bench-{file.parent.name}"
        found["metadata"]["name"] = binding["metadata"]["name"] = binding["spec"]["policyName"] = name
        selector = {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACES["with"]}}
        binding["spec"]["matchResources"] = {"namespaceSelector": selector}
        objects += [found, binding]
    text = yaml.safe_dump_all(objects)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=text)
    try:
        yield
    finally:
        kubectl("delete", "--wait=false", "--ignore-not-found", "-f", "-", text=text)


class API:
    """One connection to the API server, in the name of a member."""

    def __init__(self, kubeconfig: Path) -> None:
        found = yaml.safe_load(kubeconfig.read_text())
        self.url = found["clusters"][0]["cluster"]["server"]
        self.kubeconfig = kubeconfig
        self.session = requests.Session()

    def __enter__(self) -> "API":
        self.session = HTTPClient(KubeConfig.from_file(str(self.kubeconfig))).session
        self.session.trust_env = False
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def post(self, item: Object, namespace: str) -> requests.Response:
        group = f"/apis/{item['apiVersion']}" if "/" in item["apiVersion"] else f"/api/{item['apiVersion']}"
        item = {**item, "metadata": {**item["metadata"], "namespace": namespace}}
        headers = {"Impersonate-User": MEMBER, "Content-Type": "application/json"}
        url = f"{self.url}{group}/namespaces/{namespace}/{PLURALS[item['kind']]}?dryRun=All"
        return self.session.post(url, data=json.dumps(item), headers=headers)

    def create(self, item: Object, namespace: str) -> float:
        """Return the seconds until the API server accepts an object. Raises RuntimeError when it refuses it."""
        start = time.perf_counter()
        answer = self.post(item, namespace)
        seconds = time.perf_counter() - start
        if answer.status_code != 201:
            raise RuntimeError(f"{item['kind']} in {namespace}: {answer.status_code} {answer.text}")
        return seconds

    def wait_for_policies(self, item: Object) -> None:
        """Wait until a change of the object that breaks a policy is refused, and the object itself accepted."""
        changes: dict[str, Object] = {
            "RayService": {"upgradeStrategy": {}},
            "Service": {"externalIPs": ["10.1.2.3"]},
            "NetworkPolicy": {"podSelector": {}, "ingress": [{}]},
            "Pod": {"nodeName": "any"},
        }
        broken = {**item, "spec": {**item["spec"], **changes[item["kind"]]}}
        deadline = time.monotonic() + 120
        while (
            self.post(broken, NAMESPACES["with"]).status_code == 201
            or self.post(item, NAMESPACES["with"]).status_code != 201
            or self.post(item, NAMESPACES["without"]).status_code != 201
        ):
            if time.monotonic() > deadline:
                raise RuntimeError(self.post(item, NAMESPACES["with"]).text)
            time.sleep(0.3)


def print_result(result: dict[str, Any]) -> None:
    title = f"dry-run creation, {result['policies']} policies, load average {result['load_average']}"
    table = Table("kind", "without, ms", "with, ms", "ratio", "lowest and highest round", title=title)
    for kind, row in result["kinds"].items():
        ends = f"{row['ratios'][0]} to {row['ratios'][-1]}"
        table.add_row(kind, str(row["without_ms"]), str(row["with_ms"]), f"{row['ratio']} x", ends)
    Console(width=120).print(table)


if __name__ == "__main__":
    raise SystemExit(main())
