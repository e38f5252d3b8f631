"""A Prometheus that answers every query with made-up series, for tests of the pictures."""

import json
import math
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import httpx

__all__ = ["client"]

Labels = dict[str, str]

VALUES = {
    "rayhelm_dev_service": ["chat", "audio"], "model_name": ["llama-8b", "whisper"], "namespace": ["search", "models"],
    "deployment": ["LLMServer:llama-8b", "OpenAiIngress"], "application": ["chat", "audio"],
    "tenant": ["research", "support"],
    "proxy": ["llama-8b:v1", "llama-8b:v2"], "node": ["gpu-a", "gpu-b"], "gpu_id": ["GPU-1f", "GPU-2e"],
    "gpu_model": ["NVIDIA L4", "NVIDIA L4"], "pod": ["chat-head-x", "chat-worker-y"],
    "le": ["0.1", "0.25", "0.5", "1.0", "2.5", "+Inf"],
}  # fmt: skip


def client(is_empty: Callable[[str], bool] = lambda query: False, refuses: str = "") -> httpx.Client:
    """A client of such a Prometheus. Queries for which `is_empty` holds have no series; one that contains `refuses` is
    an error."""

    def answer(request: httpx.Request) -> httpx.Response:
        given = {key: values[0] for key, values in parse_qs(request.content.decode()).items()}
        query = given["query"]
        if refuses and refuses in query:
            return httpx.Response(400, json={"status": "error", "error": "parse error: made up"})
        series = (
            [] if is_empty(query) else [_series(labels, index, given) for index, labels in enumerate(_labels(query))]
        )
        kind = "matrix" if "start" in given else "vector"
        return httpx.Response(200, json={"status": "success", "data": {"resultType": kind, "result": series}})

    return httpx.Client(transport=httpx.MockTransport(answer), base_url="http://prometheus.test")


def _labels(query: str) -> list[Labels]:
    """Labels of two series, of the first `by` of the query; all buckets for a histogram."""
    by = re.search(r"\bby \(([\w, ]+)\)", query)
    names = by[1].split(", ") if by else []
    if names == ["le"]:
        return [{"le": bound} for bound in VALUES["le"]]
    count = 2 if names else 1
    return [
        {name: VALUES.get(name, ["one", "two"])[index] for name in names if name != "cluster"} for index in range(count)
    ]


def _series(labels: Labels, index: int, given: dict[str, str]) -> dict[str, Any]:
    if "start" not in given:
        return {"metric": labels, "value": [float(given["time"]), str(0.4 + index)]}
    start, end, step = (float(given[key]) for key in ("start", "end", "step"))
    count = int((end - start) / step) + 1
    height = index + 1 if "le" in labels else 0.4 + 0.3 * index
    is_code = any(name in given["query"] for name in ("_status", "condition", "terminated_reason"))
    points = [
        [start + number * step, str(1 + number // 40 if is_code else height * (1 + 0.5 * math.sin(number / 20)))]
        for number in range(count)
    ]
    return json.loads(json.dumps({"metric": labels, "values": points}))
