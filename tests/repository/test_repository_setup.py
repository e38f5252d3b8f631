"""What `make setup` checks before it installs, and how it gives pip's settings to uv: its bash functions."""

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


def test_setup_reports_everything_that_is_missing_with_its_package(tmp_path: Path) -> None:
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


def test_setup_refuses_another_platform_by_name() -> None:
    ended = bash('uname() { [ "$1" = -s ] && echo Darwin || echo arm64; }; check_host')
    assert ended.returncode == 3
    assert "this is Darwin on arm64" in ended.stderr


def test_setup_refuses_another_c_library() -> None:
    ended = bash("getconf() { return 1; }; check_platform; echo ${#missing[@]}")
    assert ended.stdout.strip() == "1"
    assert bash("getconf() { echo glibc 2.28; }; check_platform; echo ${#missing[@]}").stdout.strip() == "1"


def test_setup_accepts_this_computer_when_it_has_room() -> None:
    ended = bash("free_memory_gib() { echo 8; }; free_disk_gib() { echo 12; }; check_host; echo $python")
    assert ended.returncode == 0, ended.stderr
    assert Path(ended.stdout.strip()).exists()


@pytest.mark.parametrize(("version", "found"), [("3.10", ""), ("3.11", "ok"), ("3.14", "ok"), ("3.15", "")])
def test_setup_uses_a_python_that_the_locked_wheels_support(version: str, found: str, tmp_path: Path) -> None:
    fake = tmp_path / "python3"
    info = tuple(int(part) for part in version.split("."))
    fake.write_text(f'#!/bin/bash\nexec {sys.executable} -I -c "import sys; sys.version_info = {info}; $3"\n')
    fake.chmod(0o755)
    ended = bash('PATH="$FAKE:/usr/bin:/bin"; find_python | head -n 1', FAKE=str(tmp_path))
    assert (ended.stdout.strip() == str(fake)) is bool(found)


@pytest.mark.parametrize(
    ("version", "wanted"), [("0.13.8", True), ("0.14.0", True), ("1.0.0", True), ("0.13.7", False), ("0.9.30", False)]
)
def test_setup_uses_the_uv_of_the_host_when_it_is_new_enough(version: str, wanted: bool, tmp_path: Path) -> None:
    fake = tmp_path / "uv"
    fake.write_text(f"#!/bin/sh\necho uv {version}\n")
    fake.chmod(0o755)
    ended = bash("pinned_uv() { echo 0.13.8; }; find_uv", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert ended.stdout.strip() == (str(fake) if wanted else "")


def test_setup_gives_the_index_settings_of_pip_to_uv() -> None:
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


def test_setup_removes_torch_and_cuda_from_the_lock_for_a_cpu_index() -> None:
    ended = bash("without_cuda <requirements/serve.txt")
    kept = set(re.findall(r"^([a-z0-9._-]+)==", ended.stdout, re.MULTILINE))
    every = set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / "requirements" / "serve.txt").read_text(), re.MULTILINE))
    left_out = every - kept
    assert {"torch", "triton", "nvidia-cublas", "cuda-toolkit"} <= left_out
    assert all(re.match(r"torch$|triton$|cuda-|nvidia-", name) for name in left_out)


def test_setup_does_not_record_a_failed_install() -> None:
    ended = bash("uv=false; done_before() { false; }; remember() { echo remembered; }; install_locks core")
    assert ended.returncode != 0
    assert "remembered" not in ended.stdout


def test_stage_fails_when_its_command_fails() -> None:
    ended = subprocess.run([ROOT / "ci" / "stage", "a", "false"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "==> a\n")


def test_setup_recognizes_an_installed_lock_by_its_content(tmp_path: Path) -> None:
    lock, note = tmp_path / "a.txt", tmp_path / "notes" / "a"
    lock.write_text("a==1\n")
    assert bash(f"done_before {note} {lock}").returncode == 1
    assert bash(f"remember {note} {lock}; touch {lock}; done_before {note} {lock}").returncode == 0
    lock.write_text("a==2\n")
    assert bash(f"done_before {note} {lock}").returncode == 1
