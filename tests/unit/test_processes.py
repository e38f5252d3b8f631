"""Real processes, short-lived ones: what a run starts is found and ended, and nothing else."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing import shared_memory
from pathlib import Path

import psutil
import pytest

from rayhelm import processes
from rayhelm.processes import Died, Process, TimedOut

SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
DAEMON = [
    sys.executable,
    "-S",
    "-c",
    # Forks twice and leaves the session, as daemons do: no parent and no session leads back to the run.
    "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\ntime.sleep(60)",
]
STUBBORN = [
    sys.executable,
    "-S",
    "-c",
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
]


@pytest.fixture
def run() -> Iterator[str]:
    name = processes.new_run()
    yield name
    processes.end(name, grace=0.1)


def test_a_run_is_ended_with_its_orphans_and_no_other(run: str, tmp_path: Path) -> None:
    other = processes.new_run()
    foreign = subprocess.Popen(SLEEP)
    neighbour = processes.start(SLEEP, run=other, log=tmp_path / "other.log")
    processes.start(SLEEP, run=run, log=tmp_path / "sleep.log")
    processes.start(DAEMON, run=run, log=tmp_path / "daemon.log")
    _until(
        lambda: any(process.ppid() == 1 or process.pid == os.getsid(process.pid) for process in processes.members(run))
    )
    try:
        assert processes.end(run, grace=1) >= 2
        assert processes.members(run) == []
        assert foreign.poll() is None
        assert neighbour.alive
    finally:
        foreign.kill()
        foreign.wait()
        processes.end(other, grace=0.1)


def test_what_ignores_the_polite_signal_is_killed(run: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    stubborn = processes.start(STUBBORN, run=run, log=log)
    _until(lambda: "up" in log.read_text())
    processes.end(run, grace=0.2)
    assert not stubborn.alive


def test_ending_twice_is_fine(run: str, tmp_path: Path) -> None:
    processes.start(SLEEP, run=run, log=tmp_path / "log")
    assert processes.end(run, grace=1) == 1
    assert processes.end(run, grace=1) == 0


def test_shared_memory_goes_with_its_processes_and_no_other(run: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = "from multiprocessing import shared_memory as s, resource_tracker as t\nt.register = lambda *_: None\n"
    code += "block = s.SharedMemory(create=True, size=4096)\nprint(block.name, flush=True)\nimport time; time.sleep(60)"
    foreign = shared_memory.SharedMemory(create=True, size=4096)
    try:
        processes.start([sys.executable, "-c", code], run=run, log=log)
        _until(lambda: "psm_" in log.read_text())
        block = Path("/dev/shm", log.read_text().strip())
        assert block.exists()
        processes.end(run, grace=0.1)
        assert not block.exists()
        assert Path("/dev/shm", foreign.name).exists()
    finally:
        foreign.close()
        foreign.unlink()


def test_a_run_needs_an_id() -> None:
    with pytest.raises(ValueError, match="everybody"):
        processes.members("")


def test_a_process_is_known_by_start_time_too(run: str, tmp_path: Path) -> None:
    started = processes.start(SLEEP, run=run, log=tmp_path / "log")
    assert started.alive
    assert not Process(started.pid, started.created - 10, started.log).alive


def test_it_leaves_the_terminal_s_session(run: str, tmp_path: Path) -> None:
    started = processes.start(SLEEP, run=run, log=tmp_path / "log")
    assert os.getsid(started.pid) == started.pid != os.getsid(0)


def test_waiting_ends_with_the_log_when_the_process_dies(run: str, tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-c", "print('no such card')"]
    started = processes.start(command, run=run, log=tmp_path / "log")
    with pytest.raises(Died, match="no such card"):
        processes.wait_until(lambda: None, what="engine", timeout=30, needs=[started], poll=0.02)


def test_waiting_has_an_end() -> None:
    with pytest.raises(TimedOut, match="engine: not ready after 0 s"):
        processes.wait_until(lambda: None, what="engine", timeout=0, poll=0.01)


def test_waiting_answers_what_it_waited_for() -> None:
    assert processes.wait_until(lambda: 7, what="engine", timeout=0) == 7


def test_the_holder_of_a_port_is_named() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        holder = processes.listener(server.getsockname()[1])
        assert holder is not None
        assert holder.pid == os.getpid()
        assert f"pid {os.getpid()}" in str(holder)


def test_free_ports_differ_and_are_free() -> None:
    taken: set[int] = set()
    ports = [processes.free_port(taken) for _ in range(5)]
    assert len(set(ports)) == 5
    assert all(processes.listener(port) is None for port in ports)


def test_shared_pages_are_counted_once() -> None:
    assert 0 < processes.memory_held([psutil.Process()]) <= psutil.Process().memory_info().rss * 1.1


def test_tail_of_a_missing_log_says_so(tmp_path: Path) -> None:
    assert "not there" in processes.tail(tmp_path / "none")


def _until(condition, seconds: float = 10.0) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never became so"
        time.sleep(0.02)
