"""Build programs of one Go module under a temporary name, check their versions, and rename them. An interrupted build
leaves no program, and the next build continues from Go's cache."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from rayhelm.errors import MissingError
from testbed.tools.catalog import Module, Tool
from testbed.tools.checkout import Checkout
from testbed.tools.diagnosis import diagnosis
from testbed.tools.disk_space import check_disk_space
from testbed.tools.find import note_of, own_path
from testbed.tools.program_version import NotRunnable, read_version
from testbed.tools.progress import Progress
from testbed.tools.toolchain import environment, go_for

__all__ = ["build"]

UNFINISHED = ".building-"
NO_DEBUG_DATA = "-gcflags=all=-dwarf=false"
"""The linker removes the data of debuggers (`-w`): the compiler need not make them. Stack traces do not change."""
GARBAGE = "400"
"""GOGC of the compiler and the linker. Go's own 100 takes a fifth more CPU time, and 30 % less memory."""


def build(module: Module, wanted: Sequence[Tool], checkout: Checkout, place: str = "") -> float:
    """Build the wanted programs of a module with one command, and return the duration in seconds.

    The lock must be held. `place` is part of the title: `2 of 5`. Raises MissingError."""
    home = module.home(checkout)
    home.mkdir(parents=True, exist_ok=True)
    for leftover in home.glob(f"{UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    go = go_for(module.go, checkout)
    check_disk_space(module, go, checkout)
    fresh = Path(tempfile.mkdtemp(dir=home, prefix=UNFINISHED))
    names = ", ".join(tool.name for tool in wanted)
    about = f"about {_format_duration(module.recipe.seconds)} with empty caches"
    try:
        with Progress(f"{names} {module.version} ({f'{place}; ' if place else ''}{about})") as progress:
            _run_go_build(go, module, wanted, fresh, checkout, progress)
        for tool in wanted:
            if len(wanted) > 1:
                (fresh / PurePosixPath(module.recipe.programs[tool.name]).name).rename(fresh / tool.name)
            _check_version(tool, fresh / tool.name)
            (fresh / tool.name).rename(own_path(tool, checkout))
            note_of(tool, checkout).write_text(module.pin)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    print(f"    {names}: {progress.seconds:.1f} s", flush=True)
    return progress.seconds


def _run_go_build(
    go: Path, module: Module, wanted: Sequence[Tool], fresh: Path, checkout: Checkout, progress: Progress
) -> None:
    scratch = fresh / "tmp"
    scratch.mkdir()
    flags = ["-v", "-trimpath", "-mod=readonly", "-buildvcs=false", f"-ldflags=-s -w {module.ldflags}", NO_DEBUG_DATA]
    if module.recipe.tags:
        flags.append(f"-tags={','.join(module.recipe.tags)}")
    # Go names several programs after their packages; a single program gets the name of the tool.
    target = f"{fresh}/" if len(wanted) > 1 else f"{fresh}/{wanted[0].name}"
    command = [str(go), "build", *flags, "-o", target, *(module.recipe.programs[tool.name] for tool in wanted)]
    env = environment(checkout) | {"GOTMPDIR": str(scratch), "CGO_ENABLED": "1" if module.recipe.cgo else "0"}
    env.setdefault("GOGC", GARBAGE)
    said: deque[str] = deque(maxlen=30)
    process = None
    try:
        with _deferred_interrupts():
            process = subprocess.Popen(
                command,
                cwd=module.folder,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                process_group=0,  # not a new session, which would not inherit the priority of this one
            )
        _follow(process, progress, said)
        process.wait()
    except BaseException:
        if process:
            _stop(process)
        raise
    finally:
        if process and process.stdout:
            process.stdout.close()
    if process.returncode:
        end = "\n".join(said)
        cause, fix = diagnosis(end)
        raise MissingError(f"{end}\n{module.name} {module.version} could not be built: {cause}", fix)


@contextmanager
def _deferred_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt for ctrl-C and SIGTERM at the end of the block only.

    Inside it a process starts: an interruption before its handle exists would leave it running.
    """
    caught: list[int] = []
    before = {
        name: signal.signal(name, lambda number, _: caught.append(number)) for name in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
    if caught:
        raise KeyboardInterrupt


def _follow(process: subprocess.Popen[str], progress: Progress, said: deque[str]) -> None:
    """Read the output of Go up to its end: show the progress, and keep the other lines."""
    assert process.stdout
    compiled = 0
    for line in map(str.rstrip, process.stdout):
        if line.startswith("go: downloading "):
            progress.doing = line.removeprefix("go: ")
        elif line and " " not in line and ":" not in line:
            compiled += 1
            progress.doing = f"{compiled} packages compiled"
        else:
            said.append(line)


def _stop(process: subprocess.Popen[str]) -> None:
    """Stop Go, and the compilers and linkers that it started, and wait until it has ended.

    Popen itself waits only 0.25 s after ctrl-C: Go would still write into a folder that is being removed.
    """
    if process.returncode is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _check_version(tool: Tool, path: Path) -> None:
    try:
        version = read_version(tool, path)
    except NotRunnable as error:
        raise MissingError(f"go build succeeded, but {path.name} {error}", "make tools") from None
    if version != tool.version:
        raise MissingError(
            f"{tool.name} was built and reports {version or 'no version'} instead of {tool.version}",
            "check `ask`, `answer` and `ldflags` in ci/tools/tools.yaml",
        )


def _format_duration(seconds: int) -> str:
    return f"{seconds} s" if seconds < 90 else f"{(seconds + 30) // 60} min"
