"""A tar archive as a stream, so that large layers are not on the disk twice."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from rayhelm.errors import RayhelmError

__all__ = ["Stream"]


class Stream:
    """The output of GNU tar for some names in a folder, with root as owner. Patterns in `left_out` are relative to the
    folder."""

    def __init__(self, folder: Path, names: Sequence[str], *, left_out: Sequence[str] = ()) -> None:
        self._command = [
            *["tar", "--create", "--format=gnu", "--sort=name", f"--directory={folder}"],
            # File times are kept: Python compares them with the times in its bytecode.
            *["--numeric-owner", "--owner=0", "--group=0", "--hard-dereference"],
            *["--anchored", *(f"--exclude=./{pattern}" for pattern in left_out)],
            *names,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def output(self) -> IO[bytes]:
        assert self._process
        assert self._process.stdout
        return self._process.stdout

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        assert self._process
        assert self._process.stderr
        self.output.close()
        with self._process.stderr as words:
            said = words.read().decode(errors="replace")
        if self._process.wait() and kind is None:
            raise RayhelmError(f"tar: {said.strip()}")
