"""Write the log files of Ray to stdout, one JSON object per line: `python -I log_relay.py FOLDER PATTERN...`

Ray, Ray Serve and vLLM write a dozen of files in three formats. The container `logs` of a Ray pod runs this program, so
that `kubectl logs` and the log agent of the node read all of them. It imports only the standard library, because each
image with Ray must be able to run it.

A line of JSON keeps its fields; `time` and `level` have one form. Another line becomes `message`. `file` is the path
below the folder. The lines of a file stay in order. An exception is reduced to its type and its frames, because
messages of exceptions quote the request: those of pydantic contain the prompt. Exceptions of Serve's controller keep
their text, because no request reaches it.
"""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

__all__ = ["MAX_LINE", "LogFile", "LogFiles", "format_line", "run"]

MAX_LINE = 64 * 1024
"""Bytes of a line that are kept. More is dropped, and the record has `truncated`."""
MAX_FRAMES = 20
"""Innermost frames of an exception that are kept."""
POLL_S = 0.5
"""Seconds between two looks at the files."""
_CHUNK = 1024 * 1024
"""Bytes that are read from a file before the next one has its turn."""
_PREFIX = re.compile(rb"^(?:\x1b\[[0-9;]*m)*\(\w+ pid=\d+\)(?:\x1b\[[0-9;]*m)* ")
"""vLLM adds it to each line of a subprocess."""
_VLLM = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]*\] (.*)")
"""A line of vLLM: level, time without a year, file and line, message."""
_MARKER = re.compile(r":(job_id|actor_name|task_name):\S*")
"""Ray's own notes for its log viewer."""
_DROPPED = {
    *("asctime", "timestamp_ns", "levelname"),
    *("filename", "lineno", "process", "log_to_stderr", "task_name", "task_func_name", "actor_id"),
}
"""Fields of Ray's formatter: those that `time` and `level` replace, and those that are of no use in a search."""
_CONTROLLER = re.compile(r"(^|/)controller_[^/]*$")
"""Files of Serve's controller: their exceptions say why a replica does not start. A task of a replica or of the proxy
logs exceptions of requests without a request id."""
_FRAME = re.compile(r'File "([\w./@+-]+)", line (\d+), in ([\w<>.]+)')
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Timeout)\b")


class LogFile:
    """A file that another process appends to. It may be replaced by a new one (rotation) or cut."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")
        self._rest = b""
        self._is_too_long = False

    def read_lines(self) -> Iterator[tuple[bytes, bool]]:
        """Return complete lines, and whether they were cut. Raises OSError."""
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
            self._rest, self._is_too_long = b"", False
        *lines, rest = (self._rest + self._file.read(_CHUNK)).split(b"\n")
        for line in lines:
            yield line[:MAX_LINE], self._is_too_long or len(line) > MAX_LINE
            self._is_too_long = False
        self._is_too_long = self._is_too_long or len(rest) > MAX_LINE
        self._rest = rest[:MAX_LINE]

    def has_more(self) -> bool:
        return os.fstat(self._file.fileno()).st_size > self._file.tell()

    def is_replaced(self) -> bool:
        """Return whether the path is another file now, or none."""
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return True

    def close(self) -> list[tuple[bytes, bool]]:
        """Close the file and return its last line, if that had no end."""
        self._file.close()
        return [(self._rest, self._is_too_long)] if self._rest else []


class LogFiles:
    """All files of a folder that match patterns; also those that appear later."""

    def __init__(self, folder: Path, patterns: Sequence[str]) -> None:
        self._folder = folder
        self._patterns = patterns
        self._open: dict[Path, tuple[str, LogFile]] = {}

    def __enter__(self) -> "LogFiles":
        return self

    def __exit__(self, *_: object) -> None:
        for _name, file in self._open.values():
            file.close()

    def read_records(self) -> Iterator[str]:
        """Return each new line as JSON, until no file has more."""
        pending = True
        while pending:
            self._open_new()
            pending = False
            for path, (name, file) in list(self._open.items()):
                yield from _format_lines(file.read_lines(), name)
                if file.has_more():
                    pending = True
                elif file.is_replaced():
                    # What was appended between the last read and the rotation.
                    yield from _format_lines(file.read_lines(), name)
                    yield from _format_lines(file.close(), name)
                    del self._open[path]
                    pending = True

    def _open_new(self) -> None:
        # A new session of Ray has the same names below another path: the link `session_latest` is resolved each time.
        folder = self._folder.resolve()
        for pattern in self._patterns:
            for path in sorted(folder.glob(pattern)):
                if path not in self._open and path.is_file():
                    try:
                        self._open[path] = str(path.relative_to(folder)), LogFile(path)
                    except OSError:
                        continue  # removed since, or not readable


def format_line(line: bytes, *, file: str, is_cut: bool = False, now: float | None = None) -> str:
    """Return a line of a log file as JSON. `now` in Unix seconds is the time of a line that has none."""
    text = _PREFIX.sub(b"", line).strip().decode(errors="replace")
    record = _read_record(text)
    kept = {key: value for key, value in record.items() if key not in _DROPPED}
    if "exc_text" in kept and not _CONTROLLER.search(file):
        kept |= _summarize_exception(str(kept.pop("exc_text")))
    head = {"time": _format_time(record.get("timestamp_ns"), now)}
    if level := record.get("levelname"):
        head["level"] = str(level).lower()
    return json.dumps({**head, **kept, "file": file, **({"truncated": True} if is_cut else {})})


def _format_lines(lines: Iterable[tuple[bytes, bool]], file: str) -> Iterator[str]:
    for line, is_cut in lines:
        if line.strip() and not _MARKER.fullmatch(line.strip().decode(errors="replace")):
            yield format_line(line, file=file, is_cut=is_cut)


def _read_record(text: str) -> dict[str, Any]:
    if text.startswith("{"):
        try:
            record = json.loads(text)
            return record if isinstance(record, dict) else {"message": text}
        except ValueError:
            # The rest of a cut line, or text in braces. It may be a part of an exception, so it is not passed on.
            return {"message": "a line that starts like JSON and is none", "levelname": "WARNING"}
    if found := _VLLM.fullmatch(text):
        return {"levelname": found[1], "message": found[2]}
    return {"message": text}


def _summarize_exception(text: str) -> dict[str, Any]:
    """Return type and frames of the innermost exception. All else may be text of the client."""
    frames = list(_FRAME.finditer(text))
    found = _EXCEPTION.search(text, frames[-1].end() if frames else 0)
    return {
        "exception": found[0] if found else "unknown",
        "frames": [f"{frame[1]}:{frame[2]} {frame[3]}" for frame in frames[-MAX_FRAMES:]],
    }


def _format_time(nanoseconds: object, now: float | None) -> str:
    """Return a time in RFC 3339 with microseconds, in UTC."""
    seconds = nanoseconds / 1_000_000_000 if isinstance(nanoseconds, int) else (time.time() if now is None else now)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def run(folder: Path, patterns: Sequence[str], out: TextIO) -> None:
    """Write lines until SIGTERM, then what is there, and return. The kubelet sends SIGTERM after Ray has ended."""
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    with LogFiles(folder, patterns) as files:
        while True:
            is_last = stopped
            for record in files.read_records():
                out.write(record + "\n")
            out.flush()
            if is_last:
                return
            time.sleep(POLL_S)


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2:], sys.stdout)
