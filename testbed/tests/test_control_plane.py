"""ci/control-plane where nothing runs, and nothing can: each refusal is one clear message with its exit code."""

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from rayhelm import processes
from rayhelm.errors import MissingError, RayhelmError, UsageError
from testbed.control_plane import __main__ as command_line
from testbed.control_plane import programs as programs_of
from testbed.control_plane.definitions import _read_name
from testbed.control_plane.home import Home, Part, Record
from testbed.control_plane.kubeconfig import server_of
from testbed.control_plane.lock import alone, is_held
from testbed.control_plane.programs import Programs, operator_version
from testbed.control_plane.running import run_of
from testbed.tools import crd_files
from testbed.tools.checkout import HERE
from testbed.tools.crds import bundles, is_fetched

# The package names functions after these two.
home_of = import_module("testbed.control_plane.home")
up_of = import_module("testbed.control_plane.up")

SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
RECORD = Record(kubernetes="1.36.3", kuberay="1.6.2", server="https://127.0.0.1:1", complete=True)
GONE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "gone",
    "contexts": [{"name": "gone", "context": {"cluster": "gone", "user": "gone"}}],
    "clusters": [{"name": "gone", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "gone", "user": {"token": "t"}}],
}
"""A cluster that does not exist: port 1 is never one of ours."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """Where the control plane `default` would be."""
    monkeypatch.setattr(home_of, "STATE", tmp_path / "state")
    place: Home = home_of.home()
    yield place
    processes.stop_run(run_of(place, "kwok"), grace=0)


Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(place: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """The command: its exit code and output."""
    handlers = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP)}

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["ci/control-plane", *words])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        reported = capsys.readouterr()
        return int(ended.value.code or 0), reported.out + reported.err

    yield run
    for name, handler in handlers.items():
        signal.signal(name, handler)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Programs:
    """What `up` believes to find."""
    names = (
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kuberay-operator",
        "kwok",
        "kubectl",
    )
    found = Programs({name: tmp_path / name for name in names}, RECORD.kubernetes, RECORD.kuberay)
    monkeypatch.setattr(Programs, "find", lambda join: found)
    return found


# -- nothing here ----------------------------------------------------------------------------------------------------


def test_where_nothing_runs_down_is_content_and_status_says_what_starts_one(call: Call, place: Home) -> None:
    assert call("down") == (0, "no control plane default runs here\n")
    assert call("down") == (0, "no control plane default runs here\n")
    code, output = call("status")
    assert code == 3
    assert "no control plane default runs here\n    make control-plane" in output
    assert not list(place.folder.parent.iterdir())


def test_status_names_the_others_that_are_there(call: Call, place: Home) -> None:
    (place.folder.parent / "tests-7").mkdir(parents=True)
    assert "no control plane default runs here; there is tests-7" in call("status")[1]


@pytest.mark.parametrize("name", ["", ".", "..", "../..", "a/b", "/tmp", "-a", "A", "a b", "a" * 64, "ä", "a\n"])
def test_invalid_name_is_refused(call: Call, place: Home, name: str) -> None:
    place.folder.mkdir(parents=True)
    for word in ("up", "down", "status"):
        code, output = call(word, f"--name={name}")
        assert (code, "is not a valid name" in output) == (2, True)
    assert place.folder.is_dir()


def test_launcher_names_the_set_up_command(tmp_path: Path) -> None:
    (tmp_path / "ci").mkdir()
    launcher = tmp_path / "ci" / "control-plane"
    launcher.write_bytes((HERE.root / "ci" / "control-plane").read_bytes())
    ended = subprocess.run(["bash", launcher, "up"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (3, "error: this checkout is not set up: make tools\n")


# -- half of it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe\x00", b"[]", b'{"kubernetes": 5}', None])
def test_unreadable_record_is_reported_and_processes_are_stopped(call: Call, place: Home, damage: bytes | None) -> None:
    place.write(RECORD)
    record = place.folder / "record.json"
    record.unlink()
    record.mkdir() if damage is None else record.write_bytes(damage)
    processes.start(SLEEP, run=run_of(place, "kwok"), log=place.log("kwok"))
    code, output = call("status")
    assert (code, "its record is lost, and 1 of its processes run" in output) == (1, True)
    assert call("down") == (0, "ended: 1 processes\n")
    assert not place.folder.exists()


def test_processes_without_a_folder_are_reported_and_ended(call: Call, place: Home, tmp_path: Path) -> None:
    processes.start(SLEEP, run=run_of(place, "kwok"), log=tmp_path / "log")
    assert "`ci/control-plane down --name default` stops them" in call("status")[1]
    assert call("down") == (0, "ended: 1 processes\n")
    assert call("status")[0] == 3


def test_file_with_the_name_of_the_folder_is_replaced(call: Call, place: Home) -> None:
    place.folder.parent.mkdir(parents=True)
    place.folder.touch()
    assert call("down") == (0, "ended: 0 processes\n")
    assert not place.folder.exists()


def test_incomplete_start_is_not_a_control_plane(call: Call, place: Home) -> None:
    place.write(RECORD.model_copy(update={"complete": False}))
    code, output = call("status")
    assert (code, "its start is incomplete" in output) == (1, True)


def test_part_without_its_certificates_is_unhealthy(call: Call, place: Home) -> None:
    process = processes.start(SLEEP, run=run_of(place, "etcd"), log=place.log("etcd"))
    part = Part(
        name="etcd", run=run_of(place, "etcd"), command=("etcd",), port=1, pid=process.pid, created=process.created
    )
    place.write(RECORD.with_part(part))
    code, output = call("status")
    assert code == 1
    assert "etcd did not answer: `up` starts it again" in output
    assert call("down") == (0, "ended: 1 processes\n")


def test_command_waits_for_a_running_one_with_a_message(call: Call, place: Home) -> None:
    began, may_end = threading.Event(), threading.Event()

    def before() -> None:
        with alone(place):
            began.set()
            may_end.wait(300)

    thread = threading.Thread(target=before)
    thread.start()
    assert began.wait(300)
    assert is_held(place)
    code, output = call("status")
    assert (code, "another command is changing this control plane" in output) == (1, True)
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        may_end.set()

    with alone(place, say):
        assert said == ["waiting for another command that is changing this control plane"]
    thread.join()
    assert not is_held(place)
    assert not list(place.folder.parent.iterdir())


def test_lock_of_a_killed_command_does_not_block(call: Call, place: Home) -> None:
    place.folder.parent.mkdir(parents=True)
    (place.folder.parent / ".default.lock").touch()
    assert not is_held(place)
    assert call("down")[0] == 0
    assert not list(place.folder.parent.iterdir())


# -- no programs, no room --------------------------------------------------------------------------------------------


def test_all_programs_that_are_missing_are_reported_in_one_message(monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    def missing(name: str) -> Path:
        raise MissingError(f"{name} 1.2.3 is missing", f"make tools\nor name one of your own: {name.upper()}=path")

    monkeypatch.setattr(programs_of, "program", missing)
    code, output = call("up")
    assert code == 3
    assert output.count("is missing") == 7
    assert output.count("make tools") == 1
    assert not output.count("Traceback")


def test_operator_that_cannot_be_run_is_reported(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = tmp_path / "operator"
    text.write_text("hello\n")
    for path, said in ((tmp_path, "is not a file"), (text, "is not executable"), (tmp_path / "none", "does not exist")):
        monkeypatch.setenv("KUBERAY_OPERATOR", str(path))
        code, output = call("up")
        assert (code, f"KUBERAY_OPERATOR={path} {said}" in output) == (3, True), output


def test_unpinned_kubernetes_is_refused(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES", "1.2")
    code, output = call("up")
    assert (code, "KUBERNETES=1.2: there is no ci/tools/kubernetes-1.2; choose" in output) == (2, True)


def operator(folder: Path, version: str) -> Path:
    """As far as Go's note in it goes."""
    path = folder / "operator"
    path.write_bytes(
        b"\x7fELF\0" + f"github.com/ray-project/kuberay/ray-operator\tv{version}\t".encode() if version else b""
    )
    return path


@pytest.mark.parametrize(
    ("held", "reported", "version"), [("1.6.2", "", "1.6.2"), ("", "v1.7.0", "1.7.0"), ("1.7.0", "1.7.0", "1.7.0")]
)
def test_operator_version_is_read_from_the_binary_or_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: str, reported: str, version: str
) -> None:
    monkeypatch.setenv("KUBERAY_VERSION", reported)
    assert operator_version(operator(tmp_path, held)) == version


@pytest.mark.parametrize(
    ("held", "reported", "kind", "said"),
    [
        ("1.6.2", "1.7.0", UsageError, "is KubeRay 1.6.2, and KUBERAY_VERSION says 1.7.0"),
        ("1.6.2", "latest", UsageError, "KUBERAY_VERSION=latest is not a version"),
        ("", "", MissingError, "contains no version of KubeRay"),
    ],
)
def test_version_of_the_operator_is_not_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: str, reported: str, kind: type[RayhelmError], said: str
) -> None:
    monkeypatch.setenv("KUBERAY_VERSION", reported)
    with pytest.raises(kind, match=said):
        operator_version(operator(tmp_path, held))


def test_crds_of_an_unknown_operator_are_missed_before_anything_starts(
    call: Call, monkeypatch: pytest.MonkeyPatch, place: Home
) -> None:
    monkeypatch.setattr(programs_of, "program", lambda name: Path(name))
    monkeypatch.setattr(programs_of, "operator_version", lambda path: "9.9.9")
    monkeypatch.delenv("RAYHELM_CRDS", raising=False)
    code, output = call("up")
    assert (code, "the CRDs of kuberay 9.9.9" in output) == (3, True)
    assert not place.folder.exists()


def test_full_disk_is_reported_before_anything_starts(
    call: Call, programs: Programs, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up_of, "ROOM", 2**80)
    code, output = call("up")
    assert (code, "MiB of disk space are free" in output) == (3, True)
    assert not list(place.folder.parent.iterdir())


def test_full_disk_is_reported_and_next_start_cleans_up(
    call: Call, programs: Programs, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        processes.start(SLEEP, run=run_of(place, "kwok"), log=place.log("kwok"))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place.folder / "etcd.kubeconfig"))

    monkeypatch.setattr("testbed.control_plane.core.start_api_server", full)
    for clears_up in (False, True):
        code, output = call("up")
        assert (code, "etcd.kubeconfig: No space left on device" in output) == (3, True)
        assert ("removing it" in output) is clears_up
        assert not processes.list_members(run_of(place, "kwok"))
        assert place.folder.exists()  # with the logs


def test_folder_that_may_not_be_written_is_reported(call: Call, programs: Programs, place: Home) -> None:
    place.folder.parent.parent.mkdir(exist_ok=True)
    place.folder.parent.touch()  # as root, no permission keeps one out
    code, output = call("up")
    assert (code, f"error: {place.folder.parent}" in output) == (3, True)


# -- another one -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kuberay": "1.7.0"}, "replacing Kubernetes 1.36.3 at https://127.0.0.1:1 with KubeRay 1.7.0"),
        ({"kubernetes": "1.35.4"}, "replacing Kubernetes 1.35.4 "),
        ({"joined": "uid"}, "replacing Kubernetes 1.36.3 of an existing cluster at "),
    ],
)
def test_what_is_not_what_was_asked_for_is_ended(
    call: Call, programs: Programs, place: Home, monkeypatch: pytest.MonkeyPatch, change: dict[str, str], said: str
) -> None:
    place.write(RECORD.model_copy(update=change))
    monkeypatch.setattr(up_of, "_start_new", lambda *_: (_ for _ in ()).throw(RayhelmError("begun again")))
    code, output = call("up")
    assert (code, said in output, "begun again" in output) == (1, True, True)


def test_another_program_of_the_same_version_is_another_control_plane(
    call: Call, programs: Programs, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write(RECORD.with_part(Part(name="kwok", run="r", command=("/elsewhere/kwok", "--port=1"), port=1)))
    monkeypatch.setattr(up_of, "_start_new", lambda *_: (_ for _ in ()).throw(RayhelmError("begun again")))
    assert "with KubeRay 1.6.2, which has another kwok" in call("up")[1]


# -- joining ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no cluster: current-context must exist"),
        ("hello\n", "names no cluster: error loading config file"),
        (yaml.safe_dump({**GONE, "current-context": "else"}), "names no cluster: cannot locate context else"),
        (yaml.safe_dump({**GONE, "clusters": []}), "names no cluster: "),
        (yaml.safe_dump({**GONE, "clusters": [{"name": "gone", "cluster": {}}]}), "its current context has no server"),
    ],
)
def test_file_that_names_no_cluster_is_refused(
    call: Call, place: Home, tmp_path: Path, joins: None, text: str, said: str
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(text)
    code, output = call("up", f"--join={kubeconfig}")
    assert (code, said in output) == (2, True), output
    assert not place.folder.exists()


@pytest.fixture
def joins(monkeypatch: pytest.MonkeyPatch, programs: Programs) -> None:
    """The add-ons are found; kubectl is the real one."""
    programs.paths["kubectl"] = HERE.store / "bin" / "kubectl"


def test_cluster_that_does_not_answer_is_reported(call: Call, place: Home, tmp_path: Path, joins: None) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(GONE))
    code, output = call("up", f"--join={kubeconfig}")
    assert code == 3
    assert f"error: the cluster of {kubeconfig} does not answer at https://127.0.0.1:1: " in output
    assert "connection" in output
    assert len(output.splitlines()) == 2
    assert not place.folder.exists()


def test_port_is_refused_for_a_joined_cluster(call: Call, tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").touch()
    code, output = call("up", "--port=6443", f"--join={tmp_path / 'kubeconfig'}")
    assert (code, "it cannot be used with --join" in output) == (2, True)


def test_missing_joined_cluster_is_reported_and_does_not_block_down(call: Call, place: Home) -> None:
    place.write_kubeconfig(yaml.safe_dump(GONE))
    place.write(RECORD.model_copy(update={"joined": "uid"}))
    processes.start(SLEEP, run=run_of(place, "kwok"), log=place.log("kwok"))
    code, output = call("status")
    assert (code, "kube-apiserver did not answer: it was not started here" in output) == (1, True)
    code, output = call("down")
    assert code == 0
    assert "the joined cluster could not be cleaned: " in output
    assert "namespace rayhelm-testbed" in output
    assert "ended: 1 processes" in output
    assert not place.folder.exists()


def test_joined_cluster_is_known_also_without_a_record(place: Home) -> None:
    place.write_kubeconfig(yaml.safe_dump(GONE))
    assert place.is_joined
    assert server_of(place.kubeconfig) == "https://127.0.0.1:1"
    assert place.kubeconfig.stat().st_mode & 0o777 == 0o600
    place.certificates.mkdir()
    assert not place.is_joined


# -- CRDs -----------------------------------------------------------------------------------------------------------


def test_crd_name_is_read_without_parsing() -> None:
    if lacks := [bundle.name for bundle in bundles(HERE) if not is_fetched(bundle, HERE)]:
        pytest.skip(f"`make tools` brings the CRDs of {', '.join(lacks)}")
    files = [file for bundle in bundles(HERE) for file in crd_files(bundle.name)]
    named = {_read_name(file): file.read_text() for file in files}
    assert len(named) == len(files)
    for name, text in named.items():
        plural, _, group = name.partition(".")
        assert f"\n  group: {group}\n" in text
        assert f"\n    plural: {plural}\n" in text
