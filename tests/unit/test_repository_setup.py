"""What `make` checks before it installs, and how pip's settings reach uv: the bash functions, called one by one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def bash(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", "-euo", "pipefail", "-c", f"source ci/set-up\n{program}"]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_all_that_is_missing_is_told_at_once_with_its_package(tmp_path: Path) -> None:
    ended = bash(
        """
        free_memory_gib() { echo 3; }
        free_disk_gib() { echo 1; }
        find_uv() { :; }
        find_python() { echo no_such_python; }
        min_disk_gib=12
        cd "$EMPTY"
        check_host
        """,
        EMPTY=str(tmp_path),
    )
    assert ended.returncode == 3
    for wanted in ("python3-venv", "libnuma1", "12 GiB of disk", "8 GiB of free memory: 3 are free"):
        assert wanted in ended.stderr
    assert ended.stderr.count("\n  - ") == 4


def test_another_machine_is_refused_by_name() -> None:
    ended = bash('uname() { [ "$1" = -s ] && echo Darwin || echo arm64; }; check_host')
    assert ended.returncode == 3
    assert "this is Darwin on arm64" in ended.stderr


def test_another_c_library_is_refused() -> None:
    ended = bash("getconf() { return 1; }; check_platform; echo ${#missing[@]}")
    assert ended.stdout.strip() == "1"
    assert bash("getconf() { echo glibc 2.28; }; check_platform; echo ${#missing[@]}").stdout.strip() == "1"


def test_this_machine_lacks_nothing_but_perhaps_room() -> None:
    ended = bash("free_memory_gib() { echo 8; }; free_disk_gib() { echo 12; }; check_host; echo $python")
    assert ended.returncode == 0, ended.stderr
    assert Path(ended.stdout.strip()).exists()


@pytest.mark.parametrize(("version", "found"), [("3.10", ""), ("3.11", "ok"), ("3.14", "ok"), ("3.15", "")])
def test_a_python_is_taken_when_the_locked_wheels_fit_it(version: str, found: str, tmp_path: Path) -> None:
    fake = tmp_path / "python3"
    info = tuple(int(part) for part in version.split("."))
    fake.write_text(f'#!/bin/bash\nexec {sys.executable} -I -c "import sys; sys.version_info = {info}; $3"\n')
    fake.chmod(0o755)
    ended = bash('PATH="$FAKE:/usr/bin:/bin"; find_python | head -n 1', FAKE=str(tmp_path))
    assert (ended.stdout.strip() == str(fake)) is bool(found)


@pytest.mark.parametrize(
    ("version", "wanted"), [("0.13.8", True), ("0.14.0", True), ("1.0.0", True), ("0.13.7", False), ("0.9.30", False)]
)
def test_the_hosts_uv_is_taken_when_it_is_new_enough(version: str, wanted: bool, tmp_path: Path) -> None:
    fake = tmp_path / "uv"
    fake.write_text(f"#!/bin/sh\necho uv {version}\n")
    fake.chmod(0o755)
    ended = bash("pinned_uv() { echo 0.13.8; }; find_uv", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert ended.stdout.strip() == (str(fake) if wanted else "")


def test_what_pip_is_told_about_its_index_holds_for_uv() -> None:
    ended = bash(
        """
        unset UV_DEFAULT_INDEX UV_INDEX SSL_CERT_FILE
        export UV_INSECURE_HOST=already.example
        settings=":env:.index-url='https://mirror.example/simple'
global.cert='/etc/ours.pem'
global.extra-index-url='\\nhttps://a.example\\nhttps://b.example'
global.index-url='https://older.example'
global.trusted-host='pip.example'"
        set_all_from "$settings"
        printf '%s\\n' "$UV_DEFAULT_INDEX" "$UV_INDEX" "$SSL_CERT_FILE" "$UV_INSECURE_HOST"
        """
    )
    assert ended.stdout.splitlines() == [
        "https://mirror.example/simple",
        "https://a.example https://b.example",
        "/etc/ours.pem",
        "already.example",
    ], ended.stderr


def test_an_index_of_cpu_builds_takes_torch_and_cuda_out_of_the_lock() -> None:
    ended = bash("without_cuda <requirements/serve.txt")
    kept = set(re.findall(r"^([a-z0-9._-]+)==", ended.stdout, re.MULTILINE))
    every = set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / "requirements" / "serve.txt").read_text(), re.MULTILINE))
    left_out = every - kept
    assert {"torch", "triton", "nvidia-cublas", "cuda-toolkit"} <= left_out
    assert all(re.match(r"torch$|triton$|cuda-|nvidia-", name) for name in left_out)


def test_a_failed_install_is_not_remembered() -> None:
    ended = bash("uv=false; done_before() { false; }; remember() { echo remembered; }; install_locks core")
    assert ended.returncode != 0
    assert "remembered" not in ended.stdout


def test_a_stage_that_fails_fails_the_command() -> None:
    ended = subprocess.run([ROOT / "ci" / "stage", "a", "false"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "==> a\n")


def test_an_installed_lock_is_known_by_its_content(tmp_path: Path) -> None:
    lock, note = tmp_path / "a.txt", tmp_path / "notes" / "a"
    lock.write_text("a==1\n")
    assert bash(f"done_before {note} {lock}").returncode == 1
    assert bash(f"remember {note} {lock}; touch {lock}; done_before {note} {lock}").returncode == 0
    lock.write_text("a==2\n")
    assert bash(f"done_before {note} {lock}").returncode == 1
