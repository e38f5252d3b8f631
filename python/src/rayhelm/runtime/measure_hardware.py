"""Measure the hardware of one node, or the network between two: memory, matrices, GPU links, point to point.

`python measure_hardware.py node` runs alone. `python measure_hardware.py pair` runs on two nodes, with MASTER_ADDR,
MASTER_PORT and RANK in the environment; in an indexed Job, JOB_COMPLETION_INDEX replaces RANK. Each writes one JSON
object to standard output and to the file RESULT_FILE. It needs torch only: GPUs communicate through NCCL, CPUs through
gloo. Rates are GB/s (10^9).
"""

import json
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

__all__ = ["main", "measure_node", "measure_pair", "summarize"]

ROUNDS = 7
"""Measurements of each figure; the median is reported."""
MESSAGE_BYTES = 64 << 20
"""Large enough that the rate no longer depends on the latency."""
PINGS = 200
PORT = 29_511
"""For the links between the GPUs of one node."""
BUSY_LOAD = 0.8
"""Load of the node per core, from which a figure is not its speed but what others leave of it."""
BUSY_MEMORY = 0.1
"""Used part of the memory of a GPU before the measurement: another process uses the GPU."""


def main(arguments: list[str]) -> int:
    """Measure, and write the result. An error is a result too: its text is in `error`."""
    try:
        result = {"node": measure_node, "pair": measure_pair}[arguments[0]]()
    except Exception as error:
        result = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:500]}
    text = json.dumps(result)
    print(text, flush=True)
    if file := os.environ.get("RESULT_FILE"):
        Path(file).write_text(text, encoding="utf-8")
    return 1 if "error" in result else 0


def measure_node() -> dict[str, Any]:
    """Measure memory bandwidth and matrix rate of each GPU, and the links between them; of the CPU if there is none."""
    import torch

    has_gpu = torch.cuda.is_available()
    gpus = torch.cuda.device_count() if has_gpu else 0
    busy = _find_use(torch, gpus)
    devices = [f"cuda:{index}" for index in range(gpus)] or ["cpu"]
    memory = [_measure_memory(torch, device) for device in devices]
    matrix = [_measure_matrix(torch, device) for device in devices]
    links = _measure_links(gpus) if gpus > 1 else {}
    return {
        "device": "cuda" if has_gpu else "cpu",
        "name": torch.cuda.get_device_name(0) if has_gpu else "",
        "gpus": gpus,
        "torch": torch.__version__,
        # The slowest GPU: a replica waits for it.
        "memory_gb_per_s": min(rate for rate, _ in memory),
        "matrix_tflops": min(rate for rate, _ in matrix),
        **links,
        "spread": max([spread for _, spread in (*memory, *matrix)] + [links.get("spread", 0.0)]),
        "busy": busy,
    }


def measure_pair() -> dict[str, Any]:
    """Measure rate and latency from this process to the other one of two."""
    import torch
    import torch.distributed as group

    has_gpu = torch.cuda.is_available()
    backend = "nccl" if has_gpu else "gloo"
    busy = _find_use(torch, min(1, torch.cuda.device_count()) if has_gpu else 0)
    rank = int(os.environ.get("RANK") or os.environ["JOB_COMPLETION_INDEX"])
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    timeout = float(os.environ.get("JOIN_TIMEOUT_S", "300"))
    _wait_for_name(address, timeout)
    group.init_process_group(
        backend, f"tcp://{address}:{port}", timedelta(seconds=timeout), world_size=2, rank=rank,
        **({"device_id": torch.device("cuda:0")} if has_gpu else {}),
    )  # fmt: skip
    try:
        figures = _measure_point_to_point(torch, group, rank, 1 - rank, "cuda:0" if has_gpu else "cpu")
    finally:
        group.destroy_process_group()
    return {"backend": backend, "rank": rank, "torch": torch.__version__, **figures, "busy": busy}


def summarize(values: list[float]) -> tuple[float, float]:
    """Return the median, and the part of it that the middle half of the values spans."""
    low, middle, high = statistics.quantiles(values, n=4)
    return middle, (high - low) / middle if middle else 0.0


def _find_use(torch: Any, gpus: int) -> str:
    """Return which other use the node has; empty without any."""
    per_core = os.getloadavg()[0] / (os.cpu_count() or 1)
    if not gpus:
        return f"the load of the node was {per_core:.1f} per core" if per_core > BUSY_LOAD else ""
    for index in range(gpus):
        free, total = torch.cuda.mem_get_info(index)
        if free < total * (1 - BUSY_MEMORY):
            return f"{(total - free) / 2**30:.1f} GiB of GPU {index} were in use"
    return ""


def _measure_memory(torch: Any, device: str) -> tuple[float, float]:
    """Return GB/s of a copy, which reads and writes each byte."""
    count = 1 << 30 if device != "cpu" else 1 << 27
    source = torch.ones(count, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    seconds = _time_rounds(torch, device, lambda: target.copy_(source), 4)
    return summarize([2 * count / each / 1e9 for each in seconds])


def _measure_matrix(torch: Any, device: str) -> tuple[float, float]:
    """Return TFLOP/s of a product of matrices: bfloat16 on a GPU, float32 on a CPU.

    The numbers are random: of equal ones a GPU multiplies more, because it takes less power and keeps a higher clock
    (H200: 775 TFLOP/s in place of 685).
    """
    size, kind = (8192, torch.bfloat16) if device != "cpu" else (1024, torch.float32)
    left = torch.randn((size, size), dtype=kind, device=device)
    seconds = _time_rounds(torch, device, lambda: left @ left, 4)
    return summarize([2 * size**3 / each / 1e12 for each in seconds])


def _time_rounds(torch: Any, device: str, work: Callable[[], Any], repeats: int) -> list[float]:
    """Return seconds of one run of `work` in each round, after one round that is not counted."""
    found = []
    for _ in range(ROUNDS + 1):
        _synchronize(torch, device)
        begin = time.perf_counter()
        for _ in range(repeats):
            work()
        _synchronize(torch, device)
        found.append((time.perf_counter() - begin) / repeats)
    return found[1:]


def _synchronize(torch: Any, device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize(device)


def _measure_point_to_point(torch: Any, group: Any, rank: int, other: int, device: str) -> dict[str, float]:
    """Return rate and latency, one way. Both sides measure there and back, and half of it is one way."""
    large = torch.ones(MESSAGE_BYTES, dtype=torch.uint8, device=device)
    small = torch.ones(8, dtype=torch.uint8, device=device)

    def go_and_return(data: Any) -> None:
        for sender in sorted((rank, other)):
            (group.send if rank == sender else group.recv)(data, other)

    rates = [MESSAGE_BYTES / (each / 2) / 1e9 for each in _time_rounds(torch, device, lambda: go_and_return(large), 2)]
    pings = _time_rounds(torch, device, lambda: go_and_return(small), PINGS // ROUNDS)
    rate, spread = summarize(rates)
    latency, _ = summarize([each / 2 * 1e6 for each in pings])
    return {"gb_per_s": rate, "latency_us": latency, "spread": spread}


def _measure_links(gpus: int, device: str = "cuda") -> dict[str, float]:
    """Return rate and latency from each GPU of this node to the next one: those of the slowest link. With `cpu` as
    device, processes take the places of GPUs."""
    import torch.multiprocessing as processes

    context = processes.get_context("spawn")
    results = context.SimpleQueue()
    children = [context.Process(target=_measure_link, args=(rank, gpus, device, results)) for rank in range(gpus)]
    for child in children:
        child.start()
    found = [results.get() for _ in range(gpus)]
    for child in children:
        child.join()
    if failed := [each["error"] for each in found if "error" in each]:
        raise RuntimeError(f"links between GPUs: {failed[0]}")
    slowest = min(found, key=lambda each: float(each["gb_per_s"]))
    return {
        "link_gb_per_s": slowest["gb_per_s"],
        "link_latency_us": max(each["latency_us"] for each in found),
        "spread": max(each["spread"] for each in found),
    }


def _measure_link(rank: int, gpus: int, device: str, results: Any) -> None:
    try:
        results.put(_measure_links_of(rank, gpus, device))
    except Exception as error:
        # Without a result of each process the first one would wait until the Job ends.
        results.put({"error": f"GPU {rank}: {error}"[:300]})


def _measure_links_of(rank: int, gpus: int, kind: str) -> dict[str, float] | None:
    """Return the figures of the slower link of one GPU."""
    import torch
    import torch.distributed as group

    address, device = f"tcp://127.0.0.1:{PORT}", "cpu"
    if kind == "cuda":
        device = f"cuda:{rank}"
        torch.cuda.set_device(device)
        group.init_process_group("nccl", address, world_size=gpus, rank=rank, device_id=torch.device(device))
    else:
        group.init_process_group("gloo", address, world_size=gpus, rank=rank)
    best: dict[str, float] | None = None
    # One link at a time: the others wait, as in a pipeline.
    for first in range(gpus - 1):
        if rank in (first, first + 1):
            found = _measure_point_to_point(torch, group, rank, 2 * first + 1 - rank, device)
            best = found if best is None or found["gb_per_s"] < best["gb_per_s"] else best
        group.barrier()
    group.destroy_process_group()
    return best


def _wait_for_name(address: str, timeout: float) -> None:
    """Wait until the name of the other pod exists: DNS has it only after the pod has an address."""
    until = time.monotonic() + timeout
    while True:
        try:
            socket.getaddrinfo(address, None)
            return
        except OSError:
            if time.monotonic() > until:
                raise TimeoutError(f"the name {address} does not exist after {timeout:.0f} s") from None
            time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
