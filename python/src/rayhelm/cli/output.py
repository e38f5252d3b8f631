"""What the commands share: the formats and where text goes."""

import enum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Format", "FormatOption", "console", "warn"]


class Format(enum.StrEnum):
    """How a command answers."""

    text = "text"
    json = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="`text` for people, `json` for programs.")]


def console() -> "Console":
    """Standard output, as wide as the terminal; 120 columns where there is none, so that tables in logs stay whole."""
    import sys

    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 120, highlight=False)


def warn(text: str) -> None:
    import sys

    print(f"warning: {text}", file=sys.stderr)
