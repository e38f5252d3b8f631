"""Output formats and streams that the commands share."""

import enum
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from rayhelm.deploy.control_characters import escape_controls

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

__all__ = [
    "NARROW",
    "FleetArgument",
    "Format",
    "FormatOption",
    "HeaderFileOption",
    "PageFormat",
    "PageFormatOption",
    "console",
    "format_of",
    "print_page",
    "remember_format",
    "show_progress",
    "warn",
]

NARROW = 80
"""Columns that every terminal has."""
_KEY = "rayhelm.format"
Chosen = TypeVar("Chosen", bound=enum.StrEnum)
Report = TypeVar("Report", bound="BaseModel")


FleetArgument = Annotated[Path, typer.Argument(metavar="FLEET", help="The fleet file, or a folder with `fleet.yaml`.")]
HeaderFileOption = Annotated[
    Path | None,
    typer.Option(
        "--header-file",
        metavar="FILE",
        help="HTTP headers for Prometheus, `Name: value` in each line. A bearer token can also be in"
        " $RAYHELM_PROMETHEUS_TOKEN. No option takes a secret, because other users can read command lines.",
    ),
]


class Format(enum.StrEnum):
    """Output format of a command."""

    text = "text"
    json = "json"


class PageFormat(enum.StrEnum):
    """Output format of a command that can also write a page."""

    text = "text"
    json = "json"
    markdown = "markdown"


def print_page(
    report: Report, format: PageFormat, as_markdown: Callable[[Report], str], show: Callable[[Report, "Console"], None]
) -> None:
    match format:
        case PageFormat.json:
            print(report.model_dump_json(indent=2))
        case PageFormat.markdown:
            print(as_markdown(report), end="")
        case PageFormat.text:
            show(report, console())


def remember_format(context: typer.Context, chosen: Chosen) -> Chosen:
    """Callback of `--format`, so that errors have the format too."""
    context.meta[_KEY] = Format.json if chosen == "json" else Format.text
    return chosen


FormatOption = Annotated[
    Format,
    # Eager: parsed before all other options, so that their errors have the format too.
    typer.Option("--format", help="`text` for people, `json` for programs.", is_eager=True, callback=remember_format),
]
PageFormatOption = Annotated[
    PageFormat,
    typer.Option(
        "--format",
        help="`text` for people, `markdown` for a pull request, `json` for programs.",
        is_eager=True,
        callback=remember_format,
    ),
]


def format_of(context: typer.Context | None) -> Format:
    """The chosen format; read from sys.argv if the command line could not be parsed."""
    if context and (chosen := context.meta.get(_KEY)):
        return Format(chosen)
    words = sys.argv[1:]
    asked = "--format=json" in words or ("--format", "json") in pairwise(words)
    return Format.json if asked else Format.text


def console(columns: int = 120) -> "Console":
    """Standard output as wide as the terminal; `columns` without one. The default is for tables that would break."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    return _build_console(width=None if terminal else columns)


def _build_console(**options: Any) -> "Console":
    """A console that prints the control characters of texts escaped."""
    from rich.console import Console

    class Safe(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # handled as for every other output; rich would exit with 1

        def render_str(self, text: str, **options: Any) -> Any:
            return super().render_str(escape_controls(text), **options)

        def render(self, renderable: Any, options: Any = None) -> Any:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=escape_controls(segment.text))

    return Safe(highlight=False, **options)


def warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


@contextmanager
def show_progress(format: enum.StrEnum) -> Iterator[Callable[[str], None]]:
    """Show on standard error what the command waits for: one changing line in a terminal, plain lines elsewhere."""
    import time

    out = _build_console(stderr=True)
    begun, last = time.monotonic(), ""
    with out.status("starting") as status:

        def watch(what: str) -> None:
            nonlocal last
            if what == last:
                return
            last = what
            if out.is_terminal:
                status.update(f"{what} [dim]({time.monotonic() - begun:.0f} s)[/dim]")
            elif format != Format.json:
                print(f"{time.monotonic() - begun:6.1f} s  {what}", file=sys.stderr, flush=True)

        yield watch
