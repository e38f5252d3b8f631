"""ci/control-plane as hard as it may be used: killed, doubled, robbed of its ports and files.

One control plane serves all of them: each test takes it as it finds it, and leaves it running or gone."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.kit.bare import bare, needs_own_control_plane
from rayhelm.live.cluster.kubectl import Kubectl
from rayhelm.processes import list_members
from testbed.control_plane import ControlPlane, Home, home
from testbed.control_plane.down import alive
from testbed.control_plane.running import ORDER, run_of
from testbed.tools import program

ROOT = Path(__file__).resolve().parents[2]
NAME = f"ill-used-{os.getpid()}"


def start(*words: str) -> subprocess.Popen[str]:
    command = [ROOT / "ci" / "control-plane", *words, "--name", NAME]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def call(*words: str) -> tuple[int, str]:
    """Exit code and output; never a traceback."""
    process = start(*words)
    output, _ = process.communicate()
    assert "Traceback" not in output
    return process.returncode, output


def stop(process: subprocess.Popen[str], line: str, how: signal.Signals) -> None:
    """Once it has said a line."""
    assert process.stdout
    with process.stdout as output:
        assert any(line in said for said in output), f"`up` ended before it said {line!r}"
        process.send_signal(how)
    process.wait()


def nothing_is_left(place: Home) -> bool:
    return not alive(place) and not list(place.folder.parent.glob(f"*{NAME}*"))


def pids(place: Home) -> dict[str, list[int]]:
    return {part: sorted(process.pid for process in list_members(run_of(place, part))) for part in ORDER}


@pytest.fixture(scope="module")
def place() -> Iterator[Home]:
    """Whatever runs there."""
    needs_own_control_plane()
    yield home(NAME)
    call("down")


@pytest.fixture
def running(place: Home) -> Home:
    """It runs, and is well."""
    code, output = call("up")
    assert code == 0, output
    return place


# -- ended in the middle of a start ----------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["==> Kubernetes", " CRDs"])
def test_processes_of_a_killed_start_are_reported_and_ended(place: Home, line: str) -> None:
    call("down")
    stop(start("up"), line, signal.SIGKILL)
    code, output = call("status")
    assert (code, "its start is incomplete" in output) == (1, True), output
    assert call("down")[0] == 0
    assert nothing_is_left(place)
    code, output = call("down")
    assert (code, output.startswith(f"no control plane {NAME} runs here")) == (0, True)


def test_start_that_gets_sigterm_leaves_no_process(place: Home) -> None:
    call("down")
    process = start("up")
    stop(process, " CRDs", signal.SIGTERM)
    assert process.returncode == 130
    assert not alive(place)


# -- doubled ---------------------------------------------------------------------------------------------------------


def test_two_starts_at_once_after_a_killed_one_make_one_control_plane(place: Home) -> None:
    call("down")
    stop(start("up"), "==> Kubernetes", signal.SIGKILL)
    first, second = start("up"), start("up")
    outputs = [process.communicate()[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), outputs
    for line in ("an earlier start is incomplete", "waiting for another command", "==> Kubernetes"):
        assert sum(line in output for output in outputs) == 1, outputs
    before = pids(place)
    assert all(len(found) == 1 for found in before.values())
    assert call("up")[0] == 0
    assert pids(place) == before


def test_two_of_them_live_side_by_side(running: Home) -> None:
    ours = Kubectl(program("kubectl"), running.kubeconfig)
    with bare("beside") as beside:
        beside.kubectl("create", "namespace", "only-there")
        assert "namespace/only-there" not in ours("get", "namespaces", "--output=name")
    assert call("status")[0] == 0


# -- half dead -------------------------------------------------------------------------------------------------------


def test_parts_that_were_killed_are_started_again_and_the_others_left(running: Home) -> None:
    kubectl = Kubectl(program("kubectl"), running.kubeconfig)
    kubectl.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: default}}")
    before = pids(running)
    for part in ("etcd", "kwok"):
        os.kill(before[part][0], signal.SIGKILL)
    code, output = call("status")
    assert code == 1
    assert "etcd" in output.splitlines()[-1]
    assert "kwok" in output.splitlines()[-1]
    assert call("up")[0] == 0
    assert call("status")[0] == 0
    after = pids(running)
    assert after["etcd"] != before["etcd"]
    assert after["kwok"] != before["kwok"]
    assert after["kube-scheduler"] == before["kube-scheduler"]
    assert kubectl("get", "configmap", "kept", "--namespace=default", "--output=name") == "configmap/kept\n"


def test_up_reports_a_port_that_another_process_took(running: Home) -> None:
    plane = ControlPlane(running)
    plane.end("kwok", grace=0)
    with socket.create_server(("127.0.0.1", plane.part("kwok").port)):
        code, output = call("up")
    assert code == 1
    assert f"kwok could not be restarted: port {plane.part('kwok').port} is taken by" in output
    assert f"ci/control-plane down --name {NAME}" in output
    assert call("up")[0] == 0


def test_up_with_a_used_port_keeps_the_running_control_plane(running: Home) -> None:
    before = pids(running)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, output = call("up", "--port", str(port))
    assert code == 2
    assert f"port {port} is taken by" in output
    assert pids(running) == before


# -- robbed of its files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b'{"kubernetes": 5}'])
def test_unreadable_record_is_reported(running: Home, damage: bytes) -> None:
    record = running.folder / "record.json"
    whole = record.read_bytes()
    record.write_bytes(damage)
    code, output = call("status")
    assert (code, "its record is lost, and 7 of its processes run" in output) == (1, True), output
    record.write_bytes(whole)
    assert call("status")[0] == 0


def test_down_ends_also_what_lost_its_folder(running: Home, tmp_path: Path) -> None:
    running.folder.rename(tmp_path / "away")
    code, output = call("status")
    assert code == 1
    assert re.search(r"its record is lost, and \d of its processes run", output), output
    code, output = call("down")
    assert code == 0
    assert re.search(r"ended: \d processes", output), output
    assert nothing_is_left(running)
