"""Ray Serve with a tiny model on each data path, and the CPU time of its processes."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from rayhelm import processes
from rayhelm.deploy.charts.helm import template
from rayhelm.deploy.render.files import CHART
from rayhelm.run.local.config import set_listen_address
from rayhelm.run.local.data_path import read_data_path
from rayhelm.run.local.serve import up
from rayhelm.run.local.state import EndpointModel, EndpointState
from rayhelm.run.standin.checkpoint import write_checkpoint

__all__ = ["MODEL", "PATHS", "ServedPath", "serve_paths"]

PATHS = ("Python", "HAProxy", "Direct")
MODEL = "tiny"
_ENGINE_CORE = "VLLM::"
"""Name of the processes that compute. The frontend of vLLM is in the replica, and counts."""


@dataclass(frozen=True)
class ServedPath:
    """Ray Serve on one path."""

    name: str
    url: str
    state: EndpointState

    def read_cpu(self) -> float:
        """Return the CPU seconds of all processes but the engine core: proxies, ingress, replica, Ray."""
        return sum(_read_cpu(process) for process in processes.list_members(self.state.run))


@contextmanager
def serve_paths() -> Iterator[list[ServedPath]]:
    """Start one Ray for each path. All stay until the end, so that their rounds can alternate."""
    with ExitStack() as stack:
        yield [stack.enter_context(_serve(name)) for name in PATHS]


@contextmanager
def _serve(name: str) -> Iterator[ServedPath]:
    with tempfile.TemporaryDirectory(prefix="rayhelm-path-") as folder:
        state = EndpointState(Path(folder))
        port = processes.find_free_port(set())
        values = _build_values(name, write_checkpoint("LlamaForCausalLM", state.stand_ins))
        objects = template(CHART, MODEL, "models", values, kube_version="1.36.0")
        service = next(item for item in objects if item["kind"] == "RayService")
        try:
            endpoint = up(
                set_listen_address(json.loads(service["spec"]["serveConfigV2"]), port),
                [EndpointModel(model=MODEL, task="chat", prefix="/chat")],
                state,
                stand_in=True,
                share_imports=True,
                data_path=read_data_path(service),
            )
            yield ServedPath(name, endpoint.serve_url, state)
        finally:
            processes.stop_run(state.run, grace=2)
            state.clear()


def _build_values(path: str, model: Path) -> dict[str, Any]:
    engine = {
        "maxModelLen": 2048,
        "maxNumSeqs": 256,
        "maxNumBatchedTokens": 4096,
        "dtype": "float32",
        "enforceEager": True,
        "loadFormat": "dummy",
        "extra": {"kv_cache_memory_bytes": 2**29},
    }
    served = {
        "source": str(model),
        "engine": engine,
        "accelerator": {"kind": "cpu"},
        "autoscaling": {"targetOngoingRequests": 256},
        "maxOngoingRequests": 512,
    }
    return {
        "image": {"repository": "registry.example/ray-llm", "includesRayhelm": True},
        "serve": {
            "dataPath": path,
            "logging": {"accessLog": True},
            "applications": {"chat": {"ingress": {"maxReplicas": 1}, "models": {MODEL: served}}},
        },
        "workerGroups": {"cpu": {"gpu": {"count": 0}, "resources": {"limits": {"cpu": 8, "memory": "32Gi"}}}},
        "weights": {"enabled": False},
        "networkPolicy": {"apiServer": {"cidrs": ["10.96.0.1/32"]}},
    }


def _read_cpu(process: psutil.Process) -> float:
    try:
        if process.name().startswith(_ENGINE_CORE) or any(_ENGINE_CORE in word for word in process.cmdline()):
            return 0.0
        times = process.cpu_times()
        return float(times.user + times.system)
    except psutil.Error:
        return 0.0
