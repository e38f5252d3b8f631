"""The records of ci/tools/tools.yaml."""

from typing import Self

from pydantic import model_validator

from rayhelm.closed import Closed

__all__ = ["Bundle", "Catalog", "Disk", "Fetched", "Recipe"]


class Disk(Closed):
    """What a build takes where nothing is cached, in MiB."""

    modules: int
    """In Go's module cache."""
    cache: int
    """In Go's build cache."""
    programs: int
    """In .tools/go, while they are linked."""


class Recipe(Closed):
    """A Go module and the programs that are built from it, as tools.yaml has them."""

    folder: str
    """Folder beside tools.yaml with go.mod and go.sum; `{minor}` stands for the minor version that is chosen."""
    variable: str = ""
    """Environment variable that chooses another minor version."""
    module: str
    """The Go module whose version is the programs' version."""
    programs: dict[str, str]
    """Package by program."""
    ask: tuple[str, ...] = ()
    """Arguments that make a program say its version; none: it is read from the binary."""
    answer: str = ""
    """Pattern that finds the version in what it says."""
    ldflags: str = ""
    """Options of the linker; `{version}`, `{major}` and `{minor}` are filled in."""
    tags: tuple[str, ...] = ()
    """Build tags."""
    cgo: bool = False
    """Whether it is built with a C compiler."""
    group: str = ""
    """Who alone needs it: `make tools` leaves it out, and the group's own command builds it."""
    seconds: int
    """Duration of the build on two busy cores where nothing is cached."""
    disk: Disk
    """Room that the same build takes."""


class Fetched(Closed):
    """A program that the set-up fetches."""

    ask: tuple[str, ...]
    """Arguments that make it say its version."""
    answer: str
    """Pattern that finds the version in what it says."""


class Bundle(Closed):
    """CRDs that travel inside a Go module."""

    tool: str = ""
    """Recipe whose module they travel in; otherwise `module`, `version` and `sum` are given."""
    module: str = ""
    """Path of the Go module."""
    version: str = ""
    """Version of the module, without the v."""
    sum: str = ""
    """Go's checksum of the module's archive, `h1:...`."""
    folder: str
    """Folder inside the module."""


class Catalog(Closed):
    """All of tools.yaml."""

    modules: dict[str, Recipe]
    """By the name that their folder in .tools/go gets."""
    fetched: dict[str, Fetched]
    """By the name of the program."""
    crds: dict[str, Bundle]
    """By the name that tests ask for."""

    @model_validator(mode="after")
    def _each_program_is_made_once(self) -> Self:
        names = [*self.fetched, *(program for recipe in self.modules.values() for program in recipe.programs)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two ways to have {', '.join(twice)}")
        return self
