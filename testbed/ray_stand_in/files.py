"""State on disk: a file is there whole or not at all."""

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from rayhelm.errors import RayhelmError

__all__ = ["read", "write"]

T = TypeVar("T")


def write(path: Path, kind: TypeAdapter[T], content: T) -> None:
    """Under another name first, so that a reader and a crash find the old content or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(kind.dump_json(content))
    fresh.replace(path)


def read(path: Path, kind: TypeAdapter[T]) -> T:
    try:
        return kind.validate_json(path.read_bytes())
    except ValidationError as error:
        raise RayhelmError(
            f"{path} is not what the stand-in for Ray writes: delete it, or name another --state\n{error}"
        ) from error
