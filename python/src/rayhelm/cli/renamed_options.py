"""Options that a release renamed, from `data/renamed_options.yaml`."""

from collections.abc import Mapping
from importlib.resources import files

__all__ = ["new_option", "renamed_options"]


def renamed_options() -> tuple[Mapping[str, str], ...]:
    """Rows with `command`, `old` and `new`."""
    import yaml

    return tuple(yaml.safe_load(files("rayhelm").joinpath("data/renamed_options.yaml").read_text(encoding="utf-8")))


def new_option(command: str, option: str) -> str | None:
    """The name that `command` has for `option` now; None if that option was never renamed."""
    rows = renamed_options()
    return next((row["new"] for row in rows if (row["command"], row["old"]) == (command, option)), None)
