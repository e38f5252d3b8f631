"""A cache of what helm answers, in .cache/helm: shared by tests, by worker processes and by sessions.

Only the process is replaced: reading helm's answer is the code under test. The key holds all that the answer depends
on: checksum of the binary, files of the chart, arguments, content of the values files, helm's environment variables.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rayhelm.deploy.charts import helm
from rayhelm.deploy.charts.helm import charts_dir

__all__ = ["HelmCache"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".cache" / "helm"
FORMAT = "1"
OWN_FOLDERS = ("HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME")
"""Set to a temporary folder for each command."""
READS_FILES = ("--set-file", "--post-renderer", "-f")
UNUSED_SECONDS = 7 * 24 * 3600

Done = subprocess.CompletedProcess[str]
Listing = tuple[tuple[str, int, int], ...]
"""Name, time of change and size of each file."""


class HelmCache:
    """Replaces `rayhelm.deploy.charts.helm.run_helm`."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self.commands = 0
        self.hits = 0
        self.run_helm = helm.run_helm

    def install(self, config: pytest.Config) -> None:
        """Use it for every render of this session, and report its hits at the end."""
        helm.run_helm = self.run
        config.pluginmanager.register(self)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if (output := getattr(session.config, "workeroutput", None)) is None:
            self.prune()
        else:
            output["helm"] = (self.commands, self.hits)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the counts of an xdist worker; one that crashed has none."""
        commands, hits = getattr(node, "workeroutput", {}).get("helm", (0, 0))
        self.commands += commands
        self.hits += hits

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.commands:
            terminalreporter.line(f"helm: {self.commands} commands, {self.hits} answered from .cache/helm")

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> Done:
        """Run helm, or return its earlier answer."""
        self.commands += 1
        if not _is_cacheable(command):
            return self.run_helm(command, environment)
        files = [command[at + 1] for at, part in enumerate(command) if part == "--values"]
        chart = next(Path(part) for part in command if _is_chart(part))
        listing = _listing(chart)
        entry = self._entry(command, files, environment, _tree_checksum(chart, listing))
        if (done := self._read(entry, command, files)) is None:
            # xdist workers collect the same modules, and need the same answers at the same time.
            with _locked(entry.parent.with_suffix(".lock")):
                if (done := self._read(entry, command, files)) is None:
                    # Without garbage collection helm takes half the time, and 30 MB more.
                    done = self.run_helm(command, {"GOGC": "off", **environment})
                    if _listing(chart) == listing:  # else it was edited meanwhile
                        _write(entry, _encode(done, files))
                    return done
        self.hits += 1
        return done

    def prune(self) -> None:
        """Remove what no test used for a week."""
        oldest = time.time() - UNUSED_SECONDS
        for path in self.folder.glob("*/*"):
            try:
                if path.stat().st_mtime < oldest:
                    path.unlink()
            except FileNotFoundError:  # another session removed it
                continue

    def _entry(self, command: Sequence[str], files: Sequence[str], environment: Mapping[str, str], chart: str) -> Path:
        settings = {
            name: value for name, value in environment.items() if name.startswith("HELM_") and name not in OWN_FOLDERS
        }
        described: list[Any] = [FORMAT, _checksum(shutil.which(command[0]) or command[0]), chart, settings]
        described += [_described(part, files) for part in command[1:]]
        key = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
        return self.folder / key[:2] / key[2:]

    def _read(self, entry: Path, command: Sequence[str], files: Sequence[str]) -> Done | None:
        try:
            code, out, err = json.loads(zlib.decompress(entry.read_bytes()))
            os.utime(entry)
        except (FileNotFoundError, zlib.error, ValueError):
            return None
        return subprocess.CompletedProcess(list(command), code, _with_names(out, files), _with_names(err, files))


def _listing(folder: Path) -> Listing:
    """Files of a chart. Templates in a folder that is a link count too."""
    found = []
    for parent, _, names in os.walk(folder, followlinks=True):
        for name in names:
            about = (path := Path(parent, name)).stat()
            found.append((str(path), about.st_mtime_ns, about.st_size))
    return tuple(sorted(found))


@cache
def _tree_checksum(folder: Path, listing: Listing) -> str:
    """Checksum of all files of a chart, by name and content."""
    found = hashlib.sha256()
    for name, _, _ in listing:
        content = Path(name).read_bytes()
        found.update(f"{os.path.relpath(name, folder)}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


@cache
def _checksum(program: str) -> str:
    with Path(program).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_cacheable(command: Sequence[str]) -> bool:
    """Charts of a test's own folder, and options that read other files, are not."""
    return (
        command[1] in ("template", "lint")
        and any(_is_chart(part) for part in command)
        and not any(part.startswith(READS_FILES) for part in command[2:])
    )


def _is_chart(part: str) -> bool:
    return Path(part).parent == charts_dir() and charts_dir().parent == ROOT


def _described(part: str, files: Sequence[str]) -> str:
    return _checksum_of_values(part) if part in files else part


def _checksum_of_values(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _encode(done: Done, files: Sequence[str]) -> bytes:
    answer = [done.returncode, _without_names(done.stdout, files), _without_names(done.stderr, files)]
    return zlib.compress(json.dumps(answer).encode(), level=1)


def _without_names(text: str, files: Sequence[str]) -> str:
    for number, file in enumerate(files):
        text = text.replace(file, f"\0{number}\0")
    return text


def _with_names(text: str, files: Sequence[str]) -> str:
    for number, file in enumerate(files):
        text = text.replace(f"\0{number}\0", file)
    return text


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time add entries to a folder of the cache."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(entry: Path, content: bytes) -> None:
    """Complete or not at all: other processes read and write the same entry."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=entry.parent, delete=False) as file:
        file.write(content)
    Path(file.name).replace(entry)
