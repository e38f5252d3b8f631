"""Find a program: its variable, PATH, KUBEBUILDER_ASSETS, then the tools that were fetched or built in the checkout."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rayhelm.errors import MissingError
from testbed.tools.catalog import Tool, tool, tools
from testbed.tools.checkout import HERE, Checkout
from testbed.tools.program_version import NotRunnable, read_version

__all__ = ["ASSETS", "Found", "Search", "found", "is_ours", "missing", "own_path", "program", "search"]

ASSETS = "KUBEBUILDER_ASSETS"
"""Variable with the folder of setup-envtest."""


@dataclass(frozen=True)
class Found:
    """A program that was found."""

    path: Path
    version: str
    """Version that the program reports; empty if it reports none."""
    where: str
    """Source: the variable, `PATH`, or the folder."""


@dataclass(frozen=True)
class Search:
    """Result of a search."""

    found: Found | None
    passed_over: tuple[str, ...]
    """Programs that were found but have another version, each with the reason."""


def program(name: str, checkout: Checkout = HERE) -> Path:
    """Return the path of a program. Raises MissingError with the rejected programs and the command that builds it."""
    return found(name, checkout).path


def found(name: str, checkout: Checkout = HERE) -> Found:
    """Return a program with its version. Raises MissingError as `program` does."""
    wanted = tool(name, checkout)
    result = search(wanted, checkout)
    if result.found:
        return result.found
    why = "".join(f"\n  {line}" for line in result.passed_over)
    raise MissingError(
        f"{name} {wanted.version} is missing{':' if why else ''}{why}",
        f"make {wanted.group or 'tools'}\nor set your own: {wanted.variable}=PATH",
    )


def missing(checkout: Checkout = HERE, *, group: str = "") -> list[str]:
    """Return the tools of a group that are missing. Raises MissingError for a variable with a wrong path."""
    known = tools(checkout).items()
    return [name for name, wanted in known if wanted.group == group and not search(wanted, checkout).found]


def search(wanted: Tool, checkout: Checkout) -> Search:
    """Search every source in order. Raises MissingError for a variable with a wrong path."""
    if named := checkout.env.get(wanted.variable):
        return Search(_check_named(wanted, named, checkout), ())
    passed_over: list[str] = []
    for where, path in _list_candidates(wanted, checkout):
        try:
            version = read_version(wanted, path)
        except NotRunnable as error:
            passed_over.append(f"{path} ({where}) {error}")
            continue
        if version.split(".")[:2] == wanted.minor.split("."):
            return Search(Found(path, version, where), tuple(passed_over))
        passed_over.append(f"{path} ({where}) is {version or 'of an unknown version'}, not {wanted.minor}")
    if is_ours(wanted, checkout):
        return Search(Found(own_path(wanted, checkout), wanted.version, ".tools"), tuple(passed_over))
    return Search(None, tuple(passed_over))


def own_path(wanted: Tool, checkout: Checkout) -> Path:
    """Return the path of the program after it was fetched or built in the checkout."""
    return (wanted.module.home(checkout) if wanted.module else checkout.store / "bin") / wanted.name


def note_of(wanted: Tool, checkout: Checkout) -> Path:
    """Return the file with the digest of a built program's inputs."""
    return own_path(wanted, checkout).with_name(f".{wanted.name}.pin")


def is_ours(wanted: Tool, checkout: Checkout) -> bool:
    """Return whether the program was fetched, or built from exactly the current pins."""
    if not own_path(wanted, checkout).is_file():
        return False
    if not wanted.module:
        return True
    note = note_of(wanted, checkout)
    return note.is_file() and note.read_text() == wanted.module.pin


def _check_named(wanted: Tool, named: str, checkout: Checkout) -> Found:
    # As in a shell, a name without a slash is searched on PATH.
    path = Path(named if "/" in named else shutil.which(named, path=checkout.env.get("PATH", "")) or named)
    try:
        return Found(path.absolute(), read_version(wanted, path), wanted.variable)
    except NotRunnable as error:
        raise MissingError(
            f"{wanted.variable}={named} {error}",
            f"set it to an executable {wanted.name}, or unset it",
        ) from None


def _list_candidates(wanted: Tool, checkout: Checkout) -> Iterator[tuple[str, Path]]:
    if on_path := shutil.which(wanted.name, path=checkout.env.get("PATH", "")):
        yield "PATH", Path(on_path).absolute()
    if (assets := checkout.env.get(ASSETS)) and (path := Path(assets, wanted.name)).exists():
        yield ASSETS, path.absolute()
