"""Run the small programs of the host: ip, mount, nft."""

import subprocess
from collections.abc import Sequence

from rayhelm.errors import RayhelmError

__all__ = ["output", "tried"]


def output(*command: str, text: str = "") -> str:
    """What a command prints. Raises RayhelmError with its words where it fails."""
    answer = _run(command, text)
    if answer.returncode:
        raise RayhelmError(f"{' '.join(command)}: {(answer.stderr or answer.stdout).strip()}")
    return answer.stdout


def tried(*command: str) -> str:
    """Return why a command does not work here; empty where it does."""
    try:
        answer = _run(command, "")
    except OSError as error:
        return error.strerror or str(error)
    return (answer.stderr or answer.stdout).strip() or f"ended with {answer.returncode}" if answer.returncode else ""


def _run(command: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)
