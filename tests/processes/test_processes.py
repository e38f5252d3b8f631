"""rayhelm.processes with real, short-lived processes."""

import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing import shared_memory
from pathlib import Path

import psutil
import pytest

from rayhelm import processes
from rayhelm.errors import MissingError
from rayhelm.processes import Process, ProcessDied, TimedOut, ports
from shared.ports import reserve_port

SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
DAEMON = [
    sys.executable,
    "-S",
    "-c",
    # Forks twice and leaves the session, as daemons do: no parent and no session leads back to the run.
    "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
    "print('up', flush=True); time.sleep(60)",
]
STUBBORN = [
    sys.executable,
    "-S",
    "-c",
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
]


@pytest.fixture
def run() -> Iterator[str]:
    name = processes.create_run_id()
    yield name
    processes.stop_run(name, grace=0.1)


def test_stop_run_stops_orphans_of_the_run_and_no_other_process(run: str, tmp_path: Path) -> None:
    other = processes.create_run_id()
    foreign = subprocess.Popen(SLEEP)
    neighbor = processes.start(SLEEP, run=other, log=tmp_path / "other.log")
    processes.start(SLEEP, run=run, log=tmp_path / "sleep.log")
    daemon = processes.start(DAEMON, run=run, log=tmp_path / "daemon.log")
    wait_until_true(lambda: "up" in daemon.log.read_text() and not daemon.is_alive)
    try:
        assert processes.stop_run(run, grace=1) >= 2
        assert processes.list_members(run) == []
        assert foreign.poll() is None
        assert neighbor.is_alive
    finally:
        foreign.kill()
        foreign.wait()
        processes.stop_run(other, grace=0.1)


def test_stop_run_kills_processes_that_ignore_sigterm(run: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    stubborn = processes.start(STUBBORN, run=run, log=log)
    wait_until_true(lambda: "up" in log.read_text())
    processes.stop_run(run, grace=0.2)
    assert not stubborn.is_alive


def test_stop_run_returns_0_when_nothing_runs(run: str, tmp_path: Path) -> None:
    processes.start(SLEEP, run=run, log=tmp_path / "log")
    assert processes.stop_run(run, grace=1) == 1
    assert processes.stop_run(run, grace=1) == 0


def test_stop_run_frees_shared_memory_of_the_run_only(run: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = "from multiprocessing import shared_memory as s, resource_tracker as t\nt.register = lambda *_: None\n"
    code += "block = s.SharedMemory(create=True, size=4096)\nprint(block.name, flush=True)\nimport time; time.sleep(60)"
    foreign = shared_memory.SharedMemory(create=True, size=4096)
    try:
        processes.start([sys.executable, "-c", code], run=run, log=log)
        wait_until_true(lambda: "\n" in log.read_text())
        block = Path("/dev/shm", log.read_text().strip())
        assert block.exists()
        processes.stop_run(run, grace=0.1)
        assert not block.exists()
        assert Path("/dev/shm", foreign.name).exists()
    finally:
        foreign.close()
        foreign.unlink()


def test_list_members_refuses_an_empty_run_id() -> None:
    with pytest.raises(ValueError, match="every process"):
        processes.list_members("")


def test_process_is_identified_by_pid_and_start_time(run: str, tmp_path: Path) -> None:
    started = processes.start(SLEEP, run=run, log=tmp_path / "log")
    assert started.is_alive
    assert not Process(started.pid, started.created - 10, started.log).is_alive


def test_start_creates_a_new_session(run: str, tmp_path: Path) -> None:
    started = processes.start(SLEEP, run=run, log=tmp_path / "log")
    assert os.getsid(started.pid) == started.pid != os.getsid(0)


def test_wait_until_raises_with_the_log_when_a_process_dies(run: str, tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-c", "print('no such GPU')"]
    started = processes.start(command, run=run, log=tmp_path / "log")
    with pytest.raises(ProcessDied, match="no such GPU"):
        processes.wait_until(lambda: None, what="engine", timeout=300, needs=[started], poll=0.02)


def test_wait_until_raises_after_its_timeout() -> None:
    with pytest.raises(TimedOut, match="engine: not ready after 0 s"):
        processes.wait_until(lambda: None, what="engine", timeout=0, poll=0.01)


def test_wait_until_returns_the_value_of_ready() -> None:
    assert processes.wait_until(lambda: 7, what="engine", timeout=0) == 7


def test_find_listener_names_the_process() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        holder = processes.find_listener(server.getsockname()[1])
        assert holder is not None
        assert holder.pid == os.getpid()
        assert f"pid {os.getpid()}" in str(holder)


def test_find_free_port_returns_different_ports_outside_the_kernel_range() -> None:
    lowest, highest = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    taken: set[int] = set()
    found = [processes.find_free_port(taken) for _ in range(50)]
    assert len(set(found)) == 50
    assert taken == set(found)
    assert lowest <= 21_000 or not any(lowest <= port <= highest for port in found)


def test_find_free_port_raises_when_every_port_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with reserve_port() as used:
        monkeypatch.setattr(ports, "LOWEST", used)
        monkeypatch.setattr(ports, "HIGHEST", used)
        monkeypatch.setattr(ports, "KERNEL_RANGE", Path("/nowhere"))
        with pytest.raises(MissingError, match=f"no port from {used} to {used} is free"):
            processes.find_free_port(set())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has sockets with a name and no file")
def test_find_free_port_skips_a_port_that_another_process_has_chosen() -> None:
    chosen = processes.find_free_port(set())
    code = (
        "from rayhelm.processes import find_free_port, ports\n"
        f"ports.LOWEST = ports.HIGHEST = {chosen}\n"
        "print(find_free_port(set()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"no port from {chosen} to {chosen} is free" in done.stderr


def test_find_free_port_keeps_a_limited_number_of_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_MAX_CLAIMS", 3)
    monkeypatch.setattr(ports, "_claims", deque())
    for _ in range(5):
        processes.find_free_port(set())
    assert len(ports._claims) == (3 if sys.platform == "linux" else 0)
    for claim in ports._claims:
        os.close(claim)


# Starts a child without the mark, waits until it is a zombie, and leaves it one.
ZOMBIE_PARENT = [
    sys.executable,
    "-S",
    "-c",
    "import os, time\n"
    "pid = os.spawnve(os.P_NOWAIT, '/bin/true', ['true'], {})\n"
    "os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)\n"
    "print(pid, flush=True); time.sleep(60)",
]


def test_list_members_leaves_out_zombies(run: str, tmp_path: Path) -> None:
    parent = processes.start(ZOMBIE_PARENT, run=run, log=tmp_path / "log")
    wait_until_true(lambda: "\n" in parent.log.read_text())
    zombie = psutil.Process(int(parent.log.read_text()))
    assert zombie.status() == psutil.STATUS_ZOMBIE
    assert zombie in psutil.Process(parent.pid).children()
    assert [member.pid for member in processes.list_members(run)] == [parent.pid]


def test_read_command_is_empty_for_ended_processes() -> None:
    child = subprocess.Popen(["true"])
    process = psutil.Process(child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(psutil.ZombieProcess):
        process.cmdline()
    assert processes.read_command(process) == []
    child.wait()
    assert processes.read_command(process) == []


def test_measure_memory_counts_shared_pages_once() -> None:
    assert 0 < processes.measure_memory([psutil.Process()]) <= psutil.Process().memory_info().rss * 1.1


def test_tail_names_a_missing_log(tmp_path: Path) -> None:
    assert "no such file" in processes.tail(tmp_path / "none")


def wait_until_true(condition: Callable[[], bool]) -> None:
    processes.wait_until(lambda: condition() or None, what="what the test waits for", timeout=300, poll=0.02)
