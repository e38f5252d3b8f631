"""State on disk, written atomically."""

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from rayhelm.errors import RayhelmError

__all__ = ["read", "write"]

T = TypeVar("T")


def write(path: Path, kind: TypeAdapter[T], content: T) -> None:
    """Write a temporary file and rename it, so that readers find the old or the new content, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(kind.dump_json(content))
    fresh.replace(path)


def read(path: Path, kind: TypeAdapter[T]) -> T:
    try:
        return kind.validate_json(path.read_bytes())
    except ValidationError as error:
        raise RayhelmError(
            f"{path} is not a state file of the stand-in for Ray: delete it, or use another --state\n{error}"
        ) from error
