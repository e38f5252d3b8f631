"""Run programs of the host: ip, mount, nft."""

import subprocess
from collections.abc import Sequence

from rayhelm.errors import RayhelmError

__all__ = ["output", "tried"]


def output(*command: str, text: str = "") -> str:
    """Run a command and return its output. Raises RayhelmError with its error output."""
    answer = _run(command, text)
    if answer.returncode:
        raise RayhelmError(f"{' '.join(command)}: {(answer.stderr or answer.stdout).strip()}")
    return answer.stdout


def tried(*command: str) -> str:
    """Run a command and return its error; empty if it succeeds."""
    try:
        answer = _run(command, "")
    except OSError as error:
        return error.strerror or str(error)
    return (answer.stderr or answer.stdout).strip() or f"ended with {answer.returncode}" if answer.returncode else ""


def _run(command: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)
