"""An API server in memory that runs the Jobs of a probe: each test says how their pods end."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rayhelm.live.cluster.writer import ClusterWriter

__all__ = ["NODE", "PAIR", "ProbeWorld", "end", "wait"]

Object = dict[str, Any]
NAMESPACE = "/api/v1/namespaces/rayhelm-probe"
JOBS = "/apis/batch/v1/namespaces/rayhelm-probe/jobs"
CONFIG_MAP = f"{NAMESPACE}/configmaps/rayhelm-measurements"
NODE = {
    "device": "cuda", "name": "NVIDIA L4", "gpus": 1, "torch": "2.13.0", "memory_gb_per_s": 240.5,
    "matrix_tflops": 80.123456, "spread": 0.01, "busy": "",
}  # fmt: skip
PAIR = {
    "backend": "nccl",
    "rank": 0,
    "torch": "2.13.0",
    "gb_per_s": 1.18,
    "latency_us": 61.4,
    "spread": 0.02,
    "busy": "",
}


def end(result: object, code: int = 0, reason: str = "Completed") -> Object:
    """The status of a pod that ended with this result."""
    text = result if isinstance(result, str) else json.dumps(result)
    ended = {"exitCode": code, "reason": reason, "message": text}
    return {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{"state": {"terminated": ended}}]}


def wait(reason: str, message: str) -> Object:
    """The status of a pod whose container waits."""
    waiting = {"reason": reason, "message": message}
    return {"phase": "Pending", "containerStatuses": [{"state": {"waiting": waiting}}]}


class ProbeWorld:
    """The transport, and what was written through it."""

    def __init__(self, nodes: list[Object]) -> None:
        self.nodes = nodes
        self.jobs: dict[str, Object] = {}
        self.deleted: list[str] = []
        self.created: list[Object] = []
        self.config_map: Object | None = {"metadata": {"name": "rayhelm-measurements"}}
        self.forbidden: set[str] = set()
        self.node_status: Callable[[str], list[Object]] = lambda node: [end(NODE)]
        self.pair_status: Callable[[tuple[str, ...]], list[Object]] = lambda nodes: [
            end(PAIR),
            end({**PAIR, "rank": 1}),
        ]

    @property
    def writer(self) -> ClusterWriter:
        return ClusterWriter(self, "test")

    def get(self, path: str) -> tuple[int, Any]:
        plain, query = urlsplit(path).path, parse_qs(urlsplit(path).query)
        if plain in self.forbidden:
            return 403, {"message": f"{plain} is forbidden"}
        if plain == "/api/v1/nodes":
            return 200, {"items": self.nodes}
        if plain == f"{NAMESPACE}/pods":
            name = query["labelSelector"][0].partition("=")[2]
            return 200, {"items": [{"status": status} for status in self._list_statuses(name)]}
        if plain == CONFIG_MAP and self.config_map:
            return 200, self.config_map
        if plain.startswith(JOBS) and (job := self.jobs.get(plain.rpartition("/")[2])):
            return 200, job
        return 404, {"message": f"{plain} was not found"}

    def send(self, method: str, path: str, body: Any, content_type: str) -> tuple[int, Any]:
        plain = urlsplit(path).path
        if f"{method} {plain}" in self.forbidden:
            return 403, {"message": f"{plain} is forbidden"}
        if method == "POST" and plain == JOBS:
            self.jobs[body["metadata"]["name"]] = body
            self.created.append(body)
            return 201, body
        if method == "DELETE" and plain.startswith(JOBS):
            self.deleted.append(plain.rpartition("/")[2])
            self.jobs.pop(self.deleted[-1], None)
            return 200, {"status": "Success"}
        assert (method, plain, content_type) == ("PATCH", CONFIG_MAP, "application/apply-patch+yaml")
        self.config_map = body
        return 200, body

    def _list_statuses(self, name: str) -> list[Object]:
        spec = self.jobs[name]["spec"]["template"]["spec"]
        terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        nodes = tuple(term["matchFields"][0]["values"][0] for term in terms)
        return self.pair_status(nodes) if "-pair-" in name else self.node_status(nodes[0])
