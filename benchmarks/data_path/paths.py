"""Ray Serve with a tiny model on each data path, vLLM alone beside it, and the CPU time of their processes."""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from rayhelm import processes
from rayhelm.deploy.charts.helm import template
from rayhelm.deploy.render.files import CHART
from rayhelm.run.local import ray_cluster
from rayhelm.run.local.config import set_listen_address
from rayhelm.run.local.data_path import read_data_path
from rayhelm.run.local.serve import up
from rayhelm.run.local.state import EndpointModel, EndpointState
from rayhelm.run.standin.checkpoint import write_checkpoint

__all__ = ["ALONE", "MODEL", "PATHS", "ServedPath", "render_service", "serve_paths"]

PATHS = ("Python", "HAProxy", "Direct")
ALONE = "vllm serve"
"""Name of vLLM without Ray."""
MODEL = "tiny"
_ROUTE = "/v1/chat/completions"
_START_S = 600.0
_ENGINE = {
    "maxModelLen": 2048,
    "maxNumSeqs": 256,
    "maxNumBatchedTokens": 4096,
    "dtype": "float32",
    "enforceEager": True,
    "loadFormat": "dummy",
    "extra": {"kv_cache_memory_bytes": 2**29},
}
_ENGINE_CORE = "VLLM::"
"""Name of the processes that compute. The frontend of vLLM is in the replica, and counts."""


@dataclass(frozen=True)
class ServedPath:
    """A server of the model."""

    name: str
    url: str
    """Where it takes chats."""
    state: EndpointState

    def read_cpu(self) -> float:
        """Return the CPU seconds of all processes but the engine core: proxies, ingress, replica or API server, Ray."""
        return sum(_read_cpu(process) for process in processes.list_members(self.state.run))


@contextmanager
def serve_paths() -> Iterator[list[ServedPath]]:
    """Start one Ray for each path, and vLLM alone. All stay until the end, so that their rounds can alternate."""
    with ExitStack() as stack:
        yield [*(stack.enter_context(_serve(name)) for name in PATHS), stack.enter_context(_serve_alone())]


def render_service(path: str, source: str) -> dict[str, Any]:
    """Render the RayService of a data path."""
    objects = template(CHART, MODEL, "models", _build_values(path, source), kube_version="1.36.0")
    return next(item for item in objects if item["kind"] == "RayService")


@contextmanager
def _serve(name: str) -> Iterator[ServedPath]:
    with _create_state() as state:
        service = render_service(name, str(write_checkpoint("LlamaForCausalLM", state.stand_ins)))
        endpoint = up(
            set_listen_address(json.loads(service["spec"]["serveConfigV2"]), processes.find_free_port(set())),
            [EndpointModel(model=MODEL, task="chat", prefix="/chat")],
            state,
            stand_in=True,
            share_imports=True,
            data_path=read_data_path(service),
        )
        yield ServedPath(name, f"{endpoint.serve_url}/chat{_ROUTE}", state)


@contextmanager
def _serve_alone() -> Iterator[ServedPath]:
    taken = set[int]()
    port = processes.find_free_port(taken)
    with _create_state() as state:
        options = {
            "model": write_checkpoint("LlamaForCausalLM", state.stand_ins),
            "port": port,
            "served-model-name": MODEL,
            "max-model-len": _ENGINE["maxModelLen"],
            "max-num-seqs": _ENGINE["maxNumSeqs"],
            "max-num-batched-tokens": _ENGINE["maxNumBatchedTokens"],
            "dtype": _ENGINE["dtype"],
            "load-format": _ENGINE["loadFormat"],
            "kv-cache-memory-bytes": 2**29,
        }
        words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        # The command `vllm` asks for a distribution of this name, and that for CPUs has another one.
        server = processes.start(
            [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *words, "--enforce-eager"],
            run=state.run,
            log=state.logs / "vllm.log",
            env=ray_cluster.build_environment(state, stand_in=True, metrics=processes.find_free_port(taken)),
            cwd=state.folder,
        )
        url = f"http://127.0.0.1:{port}"
        processes.wait_until(lambda: _is_healthy(url), what="vllm serve", timeout=_START_S, needs=[server])
        yield ServedPath(ALONE, url + _ROUTE, state)


@contextmanager
def _create_state() -> Iterator[EndpointState]:
    with tempfile.TemporaryDirectory(prefix="rayhelm-path-") as folder:
        state = EndpointState(Path(folder))
        try:
            yield state
        finally:
            processes.stop_run(state.run, grace=2)
            state.clear()


def _is_healthy(url: str) -> bool | None:
    try:
        return httpx.get(f"{url}/health", trust_env=False).is_success or None
    except httpx.TransportError:
        return None


def _build_values(path: str, source: str) -> dict[str, Any]:
    served = {
        "source": source,
        "engine": _ENGINE,
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
