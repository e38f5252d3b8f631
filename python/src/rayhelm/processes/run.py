"""Start processes of a run in their own sessions, and stop a run."""

import os
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from rayhelm.processes.find import list_members, list_shared_memory
from rayhelm.processes.mark import MARK

__all__ = ["MARK", "Process", "create_run_id", "start", "stop_run"]

_MOMENT = 0.05
"""Seconds until the environment of a new program can be read."""
# Python warns when the handle of a running child is dropped; these children outlive their starter on purpose.
_CHILDREN: list[subprocess.Popen[bytes]] = []


def create_run_id() -> str:
    """Return a unique id for a run."""
    return uuid.uuid4().hex


@dataclass(frozen=True)
class Process:
    """A process that was started, identified by pid and start time: pids are reused, the pair is not."""

    pid: int
    created: float
    """Seconds since 1970."""
    log: Path
    """File with its output."""

    @property
    def is_alive(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            # Start times move a little when the clock is set; a pid is not reused within seconds.
            return abs(process.create_time() - self.created) < 5 and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


def start(
    command: Sequence[str], *, run: str, log: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Process:
    """Start `command` in its own session (Ctrl-C of the terminal does not reach it) with the mark of `run`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    # SPT_NOENV: processes that set their title (vLLM's engine cores) would overwrite the mark with it.
    environment = {**(os.environ if env is None else env), MARK: run, "SPT_NOENV": "1"}
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=cwd,
            start_new_session=True,
        )
    _CHILDREN.append(child)
    time.sleep(_MOMENT)
    return Process(child.pid, _read_start_time(child.pid), log)


def stop_run(run: str, *, grace: float = 5.0) -> int:
    """Stop every process of a run, free the memory that they shared, and return how many there were.

    Processes that run `grace` seconds after SIGTERM are killed. The search is repeated until no process is left,
    because a tree that is stopped may still start some. Raises RuntimeError if some cannot be stopped.
    """
    stopped: set[int] = set()
    shared: set[Path] = set()
    patience = grace
    for _ in range(10):
        alive = list_members(run) or _list_members_again(run)
        if not alive:
            for block in shared:
                block.unlink(missing_ok=True)
            return len(stopped)
        shared |= list_shared_memory(alive)
        stopped.update(process.pid for process in alive)
        _terminate(alive, patience)
        patience = 0.5
    raise RuntimeError(
        f"these processes cannot be stopped: {', '.join(str(process.pid) for process in list_members(run))}"
    )


def _list_members_again(run: str) -> list[psutil.Process]:
    """List the members again: a process has no readable environment for a moment while it executes a program."""
    time.sleep(_MOMENT)
    return list_members(run)


def _terminate(processes: Sequence[psutil.Process], grace: float) -> None:
    _send_signal(processes, kill=False)
    _, alive = psutil.wait_procs(processes, timeout=grace)
    _send_signal(alive, kill=True)
    psutil.wait_procs(alive, timeout=5)


def _send_signal(processes: Sequence[psutil.Process], *, kill: bool) -> None:
    # psutil compares start times before it sends a signal, so a reused pid is left alone.
    for process in processes:
        try:
            process.kill() if kill else process.terminate()
        except psutil.Error:
            continue


def _read_start_time(pid: int) -> float:
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return 0.0
