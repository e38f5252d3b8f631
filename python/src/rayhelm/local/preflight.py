"""What has to be there before anything is started. Looks, tells, and touches nothing."""

import ctypes.util
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil

from rayhelm import processes
from rayhelm.advice import how_to_get_ray
from rayhelm.errors import FleetError, MissingError, Problem
from rayhelm.local.gateway import find_haproxy
from rayhelm.local.state import Home

__all__ = ["Cards", "cards", "check", "foreign_rays"]

MIB = 1024 * 1024
BASE_MEMORY = 2000 * MIB
"""Ray, Serve's controller and proxy, and the zygote with its shared pages."""
MEMORY_PER_MODEL = 800 * MIB
"""Replica, engine core, worker and ingress of a stand-in, beyond what they share with the zygote."""
DISK = 500 * MIB
"""Ray's logs and sockets."""


@dataclass(frozen=True)
class Cards:
    """GPUs of this computer."""

    count: int
    names: str


def check(
    home: Home,
    *,
    port: int,
    models: int,
    stand_in: bool,
    gpus: float = 0,
    cards: Cards | None = None,
    gateway: bool = False,
) -> None:
    """Raises what keeps the endpoint from starting. `gpus` are the cards that the models book."""
    _packages()
    _machine(stand_in)
    if gateway:
        find_haproxy()
    _not_running(home)
    _port(port)
    if stand_in:
        _memory(models)
    if gpus > (cards.count if cards else 0):
        _too_few(gpus, cards)
    _disk(home)


def cards() -> Cards | None:
    """The GPUs that vLLM would find, or None."""
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
            return Cards(len(lines), ", ".join(lines))
    return None


def foreign_rays(home: Home) -> list[psutil.Process]:
    """Heads of other Rays on this computer: they stay, and ours takes other ports."""
    ours = {process.pid for process in processes.members(home.run)}
    return [
        process
        for process in psutil.process_iter(["name"])
        if process.info["name"] == "gcs_server" and process.pid not in ours
    ]


def _packages() -> None:
    missing = [name for name in ("ray", "vllm", "torch") if find_spec(name) is None]
    if missing:
        raise MissingError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed: `up` needs them",
            how_to_get_ray(),
        )


def _machine(stand_in: bool) -> None:
    if platform.system() != "Linux":
        raise MissingError(f"vLLM runs on Linux; this is {platform.system()}", "use a Linux computer, or a container")
    if stand_in and not ctypes.util.find_library("numa"):
        raise MissingError(
            "libnuma.so.1 is not there: vLLM's CPU engine is linked to it",
            "apt-get install libnuma1    # Debian, Ubuntu\ndnf install numactl-libs    # Fedora, RHEL",
        )


def _not_running(home: Home) -> None:
    if not processes.members(home.run):
        return
    endpoint = home.read()
    if endpoint and endpoint.ready:
        raise FleetError(Problem(f"an endpoint of ours runs already at {endpoint.url}", fix="rayhelm down"))
    raise FleetError(Problem("processes of an earlier `rayhelm up` are still there", fix="rayhelm down"))


def _port(port: int) -> None:
    holder = processes.listener(port)
    if holder:
        taken: set[int] = set()
        fix = f"rayhelm up ... --port {processes.free_port(taken)}"
        raise FleetError(Problem(f"port {port} is taken by {holder}; nothing was started", fix=fix))


def _memory(models: int) -> None:
    needed = BASE_MEMORY + models * MEMORY_PER_MODEL
    free = psutil.virtual_memory().available
    if free < needed:
        raise MissingError(
            f"{models} models need about {needed / 2**30:.1f} GiB of memory, and {free / 2**30:.1f} GiB are free",
            "rayhelm up ... --service NAME    # one service alone",
        )


def _too_few(gpus: float, cards: Cards | None) -> None:
    here = f"{cards.count} here ({cards.names})" if cards else "none here"
    raise FleetError(
        Problem(
            f"the models book {gpus:g} GPUs, and there are {here}: Ray would wait for the others without an end",
            fix="rayhelm up ... --service NAME    # one service alone\n"
            "CUDA_VISIBLE_DEVICES= rayhelm up ...    # tiny models on the CPU",
        )
    )


def _disk(home: Home) -> None:
    for folder in (home.state, home.session):
        free = shutil.disk_usage(_existing(folder)).free
        if free < DISK:
            raise MissingError(f"{folder} has {free // MIB} MiB left, {DISK // MIB} are needed", "free some space")


def _existing(folder: Path) -> Path:
    return folder if folder.is_dir() else _existing(folder.parent)
