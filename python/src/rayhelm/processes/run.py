"""Starts processes of a run in sessions of their own, and ends a run."""

import os
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from rayhelm.processes.find import members, shared_memory
from rayhelm.processes.mark import MARK

__all__ = ["MARK", "Process", "end", "new_run", "start"]

_MOMENT = 0.05
"""Seconds after which a new program's environment can be read."""
# Dropping the handle of a running child makes Python warn; these are meant to outlive their starter.
_CHILDREN: list[subprocess.Popen[bytes]] = []


def new_run() -> str:
    """An id for a run that nobody else has."""
    return uuid.uuid4().hex


@dataclass(frozen=True)
class Process:
    """A process that was started, known by number and start time: numbers are used again, the pair is not."""

    pid: int
    created: float
    """Seconds since 1970."""
    log: Path
    """Where its output goes."""

    @property
    def alive(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            # Start times move a little when the clock is set; a number is not used again within seconds.
            return abs(process.create_time() - self.created) < 5 and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


def start(
    command: Sequence[str], *, run: str, log: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Process:
    """Starts `command` in a session of its own (the terminal's Ctrl-C does not reach it), marked as one of `run`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    # SPT_NOENV: processes that write themselves a title (vLLM's engine cores do) would overwrite the mark with it.
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
    return Process(child.pid, _created(child.pid), log)


def end(run: str, *, grace: float = 5.0) -> int:
    """Ends every process of a run, frees the memory they shared, and says how many there were. Those that have not gone
    `grace` seconds after the polite signal are killed; looked for again until none is left, since a dying tree may
    still start some."""
    ended: set[int] = set()
    shared: set[Path] = set()
    patience = grace
    for _ in range(10):
        alive = members(run) or _second_look(run)
        if not alive:
            for block in shared:
                block.unlink(missing_ok=True)
            return len(ended)
        shared |= shared_memory(alive)
        ended.update(process.pid for process in alive)
        _terminate(alive, patience)
        patience = 0.5
    raise RuntimeError(f"processes that cannot be ended: {', '.join(str(process.pid) for process in members(run))}")


def _second_look(run: str) -> list[psutil.Process]:
    """A process that is just becoming another program has no environment for a moment."""
    time.sleep(_MOMENT)
    return members(run)


def _terminate(processes: Sequence[psutil.Process], grace: float) -> None:
    _signal(processes, polite=True)
    _, stubborn = psutil.wait_procs(processes, timeout=grace)
    _signal(stubborn, polite=False)
    psutil.wait_procs(stubborn, timeout=5)


def _signal(processes: Sequence[psutil.Process], *, polite: bool) -> None:
    # psutil compares start times before it signals: a number that was used again is left alone.
    for process in processes:
        try:
            process.terminate() if polite else process.kill()
        except psutil.Error:
            continue


def _created(pid: int) -> float:
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return 0.0
