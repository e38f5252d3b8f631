"""The program that writes Ray's log files to stdout: every line once, as JSON, without text of clients."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rayhelm.runtime import log_relay
from rayhelm.runtime.log_relay import MAX_LINE, LogFiles, format_line

NOW = 1795398117.5
PROMPT = "zebra-secret-prompt"
Open = Callable[..., LogFiles]


def read(line: bytes) -> dict[str, Any]:
    found = json.loads(format_line(line, file="serve/proxy.log", now=NOW))
    assert found.pop("file") == "serve/proxy.log"
    assert isinstance(found, dict)
    return found


def serve_line(**fields: Any) -> bytes:
    """A line as Ray's JSON formatter writes it."""
    common = {"asctime": "2026-11-23 01:41:57,580", "levelname": "INFO", "timestamp_ns": 1795398117580959929}
    return json.dumps({**common, "filename": "proxy.py", "lineno": 1, "process": 7, **fields}).encode()


@pytest.fixture
def open_files(folder: Path) -> Iterator[Open]:
    with ExitStack() as stack:
        yield lambda *patterns: stack.enter_context(LogFiles(folder, patterns))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "session_1/serve").mkdir(parents=True)
    (tmp_path / "session_latest").symlink_to("session_1")
    return tmp_path / "session_latest"


def messages(files: LogFiles) -> list[str]:
    return [json.loads(record)["message"] for record in files.read_records()]


def test_serve_line_keeps_its_fields_with_one_form_of_time_and_level() -> None:
    found = read(serve_line(message="POST /v1 200 9.0ms", request_id="r-1", tenant="apps", replica="x"))
    assert found == {
        "time": "2026-11-23T01:41:57.580960Z",
        "level": "info",
        "message": "POST /v1 200 9.0ms",
        "request_id": "r-1",
        "tenant": "apps",
        "replica": "x",
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"WARNING 11-23 01:41:08 [vllm.py:1371] Eager", {"level": "warning", "message": "Eager"}),
        (b"\x1b[0;36m(DP0 pid=12)\x1b[0;0m INFO 11-23 01:41:08 [c.py:1] Ready", {"level": "info", "message": "Ready"}),
        (b"(Worker pid=3) text", {"message": "text"}),
        (b"Segmentation fault", {"message": "Segmentation fault"}),
        (b"text\xff", {"message": "text\ufffd"}),
        (b"[1, 2]", {"message": "[1, 2]"}),
    ],
)  # fmt: skip
def test_line_of_text_becomes_the_message(line: bytes, expected: dict[str, str]) -> None:
    assert read(line) == {"time": "2026-11-23T01:41:57.500000Z", **expected}


def test_broken_json_is_not_passed_on() -> None:
    found = read(serve_line(message="m", exc_text=PROMPT)[:-9])
    assert PROMPT not in str(found)
    assert found["level"] == "warning"


EXCEPTIONS = {
    "traceback": (
        'Traceback (most recent call last):\n  File "/app/llm/ingress.py", line 61, in chat\n    x = list(y)\n'
        f"pydantic_core._pydantic_core.ValidationError: 7 errors\n  input_value='{PROMPT}', input_type=str"
    ),
    "traceback as Ray Serve LLM writes it": (
        "('Traceback (most recent call last):\\n',)('  File \"/app/llm/ingress.py\", line 61, in chat\\n    x\\n',)"
        f"(\"pydantic_core._pydantic_core.ValidationError: 7 errors\\ninput_value='{PROMPT}'\\n\",)"
    ),
}


@pytest.mark.parametrize("text", EXCEPTIONS.values(), ids=EXCEPTIONS)
def test_exception_of_a_request_is_reduced_to_type_and_frames(text: str) -> None:
    found = read(serve_line(message="failed", request_id="r-1", exc_text=text))
    assert PROMPT not in str(found)
    assert found["exception"] == "pydantic_core._pydantic_core.ValidationError"
    assert found["frames"] == ["/app/llm/ingress.py:61 chat"]
    assert "exc_text" not in found


@pytest.mark.parametrize(
    "file", ["serve/replica_chat_1.log", "serve/proxy_10.0.0.1.log", "controller_1.log/replica_1.log"]
)
def test_exception_without_a_request_id_is_reduced_too(file: str) -> None:
    """A task that a request started logs without its id."""
    line = serve_line(message="Task exception was never retrieved", exc_text=EXCEPTIONS["traceback"])
    found = json.loads(format_line(line, file=file))
    assert PROMPT not in str(found)
    assert found["exception"] == "pydantic_core._pydantic_core.ValidationError"
    assert "exc_text" not in found


def test_exception_of_the_controller_keeps_its_text() -> None:
    """It says why a replica does not start."""
    line = serve_line(message="failed", exc_text="RuntimeError: no memory")
    assert json.loads(format_line(line, file="serve/controller_12.log"))["exc_text"] == "RuntimeError: no memory"


def test_files_that_appear_later_are_read_from_their_start(open_files: Open, folder: Path) -> None:
    files = open_files("serve/*.log", "worker-*.out")
    assert messages(files) == []
    (folder / "serve/a.log").write_text("one\n")
    (folder / "worker-1.out").write_text("two\n")
    (folder / "worker-1.txt").write_text("not matched\n")
    assert messages(files) == ["one", "two"]
    assert messages(files) == []


def test_line_without_an_end_waits_for_its_end(open_files: Open, folder: Path) -> None:
    files, path = open_files("serve/*.log"), folder / "serve/a.log"
    path.write_text("one\ntw")
    assert messages(files) == ["one"]
    with path.open("a") as file:
        file.write("o\n")
    assert messages(files) == ["two"]


def test_rotated_file_is_read_to_its_end(open_files: Open, folder: Path) -> None:
    files, path = open_files("serve/*.log"), folder / "serve/a.log"
    path.write_text("one\n")
    assert messages(files) == ["one"]
    with path.open("a") as file:
        file.write("two\nthree")
    path.rename(path.with_suffix(".log.1"))
    path.write_text("four\n")
    assert messages(files) == ["two", "three", "four"]


def test_file_that_was_cut_is_read_from_its_start(open_files: Open, folder: Path) -> None:
    files, path = open_files("serve/*.log"), folder / "serve/a.log"
    path.write_text("one\ntwo\n")
    messages(files)
    path.write_text("new\n")
    assert messages(files) == ["new"]


def test_new_session_of_ray_is_followed(open_files: Open, folder: Path) -> None:
    files = open_files("serve/*.log")
    (folder / "serve/a.log").write_text("old\n")
    assert messages(files) == ["old"]
    (folder.parent / "session_2/serve").mkdir(parents=True)
    (folder.parent / "session_2/serve/a.log").write_text("new\n")
    folder.unlink()
    folder.symlink_to("session_2")
    assert messages(files) == ["new"]


def test_notes_for_the_log_viewer_of_ray_are_left_out(open_files: Open, folder: Path) -> None:
    (folder / "worker-1.err").write_text(":job_id:01\n:actor_name:ServeReplica:chat\n\n:task_name:f\nreal\n")
    assert messages(open_files("worker-*.err")) == ["real"]


@pytest.mark.parametrize("size", [MAX_LINE + 1, 3 * 1024 * 1024])
def test_long_line_is_cut_and_the_next_one_is_whole(open_files: Open, folder: Path, size: int) -> None:
    (folder / "serve/a.log").write_text("x" * size + "\nnext\n")
    long, following = (json.loads(record) for record in open_files("serve/*.log").read_records())
    assert long["truncated"]
    assert len(long["message"]) == MAX_LINE
    assert following["message"] == "next"
    assert "truncated" not in following


def test_program_writes_the_last_lines_when_it_is_stopped(folder: Path) -> None:
    path = folder / "serve/a.log"
    path.write_text("first\n")
    command = [sys.executable, "-I", "-B", log_relay.__file__, str(folder), "serve/*.log"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert json.loads(process.stdout.readline())["message"] == "first"
        with path.open("a") as file:
            file.write("last\n")
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert [json.loads(line)["message"] for line in rest.splitlines()] == ["last"]


def test_program_waits_for_the_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-B", log_relay.__file__, str(tmp_path / "session_latest/logs"), "*.log"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(2 * log_relay.POLL_S)
        (tmp_path / "session_latest/logs").mkdir(parents=True)
        (tmp_path / "session_latest/logs/a.log").write_text("first\n")
        assert process.stdout
        assert json.loads(process.stdout.readline())["message"] == "first"
        process.terminate()
        process.communicate(timeout=300)
    assert process.returncode == 0
