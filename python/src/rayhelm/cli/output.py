"""What the commands share: the formats and where text goes."""

import enum
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Format", "FormatOption", "console", "format_of", "warn"]

_KEY = "rayhelm.format"


class Format(enum.StrEnum):
    """How a command answers."""

    text = "text"
    json = "json"


def _remember(context: typer.Context, chosen: Format) -> Format:
    context.meta[_KEY] = chosen
    return chosen


FormatOption = Annotated[
    Format,
    # Eager: known before anything else is found wrong, so that errors have the format too.
    typer.Option("--format", help="`text` for people, `json` for programs.", is_eager=True, callback=_remember),
]


def format_of(context: typer.Context | None) -> Format:
    """What was chosen; by the words of the command line where it could not be parsed."""
    if context and (chosen := context.meta.get(_KEY)):
        return Format(chosen)
    words = sys.argv[1:]
    asked = "--format=json" in words or ("--format", "json") in pairwise(words)
    return Format.json if asked else Format.text


def console() -> "Console":
    """Standard output, as wide as the terminal; 120 columns where there is none, so that tables in logs stay whole."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # ends as for every other output; rich would end with 1

    terminal = sys.stdout is not None and sys.stdout.isatty()
    return Piped(width=None if terminal else 120, highlight=False)


def warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)
