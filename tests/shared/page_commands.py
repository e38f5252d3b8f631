"""The commands and files of a documented page, and what replaces those that a test cannot use.

A command is one statement of a block ```` ```sh ````, with its line breaks; a file is a block ```` ```yaml ````. A
substitution names a text of a page's commands and files: one that none contains is an error, so a page cannot change
without it.
"""

import re
import subprocess
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import Field, TypeAdapter

from rayhelm.facts.closed import Closed

__all__ = [
    "PageCommand",
    "Substitution",
    "check_syntax",
    "list_blocks",
    "list_commands",
    "list_files",
    "read_substitutions",
    "substitute",
]


class Substitution(Closed):
    """A text of a page that cannot run as it is written."""

    page: str = Field(min_length=1)
    """Path in the repository."""
    text: str = Field(min_length=1)
    """Part of one command or file, or of several."""
    run: str
    """What is used in its place. Empty, with the whole command as `text`: the command does not run."""
    reason: str = Field(min_length=1)
    """Why."""


@dataclass(frozen=True)
class PageCommand:
    """One command of a page, or one file."""

    text: str
    """As the page has it."""
    run: str
    """What runs; empty for a command that does not run."""

    @property
    def is_as_written(self) -> bool:
        return self.run == self.text


def list_blocks(page: str) -> list[str]:
    """Return the texts of the blocks `sh` of a page, also of those in lists."""
    return _list_blocks(page, "sh")


def list_files(page: str) -> list[str]:
    """Return the texts of the blocks `yaml` of a page, without the indentation of lists."""
    return [textwrap.dedent(text) for text in _list_blocks(page, "yaml")]


def list_commands(page: str) -> list[str]:
    """Return the commands of a page, without comments of a whole line."""
    return [command for block in list_blocks(page) for command in _split(block)]


def read_substitutions(file: Path) -> list[Substitution]:
    """Return the substitutions of a file, of all pages."""
    return TypeAdapter(list[Substitution]).validate_python(yaml.safe_load(file.read_text()))


def substitute(commands: Iterable[str], substitutions: Iterable[Substitution]) -> list[PageCommand]:
    """Replace texts of commands and files. Raises ValueError with each text that none contains."""
    found = [PageCommand(text, text) for text in commands]
    stale = []
    for each in substitutions:
        changed = [PageCommand(command.text, command.run.replace(each.text, each.run)) for command in found]
        if changed == found:
            stale.append(f"{each.page}: nothing contains {each.text!r} ({each.reason})")
        found = changed
    if stale:
        raise ValueError("\n".join(stale))
    return found


def check_syntax(script: str) -> str:
    """Return what `bash -n` reports; empty for a script without a fault."""
    return subprocess.run(["bash", "-n", "-c", script], capture_output=True, text=True, check=False).stderr.strip()


def _list_blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", page, re.MULTILINE | re.DOTALL)


def _split(block: str) -> Iterator[str]:
    """Yield the statements of a block: lines up to the first one with which bash can parse them."""
    lines: list[str] = []
    for line in block.splitlines():
        if not lines and (not line.strip() or line.lstrip().startswith("#")):
            continue
        lines.append(line)
        text = "\n".join(lines)
        if not line.endswith("\\") and not check_syntax(text):
            yield text.strip()
            lines = []
    if lines:
        raise ValueError(f"bash cannot parse: {lines[0]}")
