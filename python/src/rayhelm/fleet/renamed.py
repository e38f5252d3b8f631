"""The new names of keys that the fleet file had in an earlier release."""

from rayhelm.facts.renamed import SINCE, renamed

__all__ = ["describe_renamed", "new_key"]

ANY = "*"


def new_key(path: tuple[str | int, ...]) -> str | None:
    """The name that the last key of `path` has now; None if that key was never renamed."""
    for row in renamed("fleet"):
        old = row.old.split(".")
        if len(old) == len(path) and all(part in (ANY, str(step)) for part, step in zip(old, path, strict=True)):
            return row.new.rpartition(".")[2]
    return None


def describe_renamed(old: str, new: str) -> str:
    return f"`{old}` was renamed to `{new}` in rayhelm {SINCE}"
