"""Programs that `make tools` builds."""

from pathlib import Path

import pytest

from rayhelm.errors import MissingError
from testbed.tools import program

__all__ = ["built_program"]


def built_program(name: str) -> Path:
    """Return the path of a program. Skips the test where it is not built."""
    try:
        return program(name)
    except MissingError as error:
        pytest.skip(f"no {name}: {error.how.splitlines()[0]} builds it")
