"""The records of ci/tools/tools.yaml."""

from typing import Self

from pydantic import model_validator

from rayhelm.facts.closed import Closed

__all__ = ["Bundle", "Catalog", "Disk", "Fetched", "Recipe"]


class Disk(Closed):
    """Disk space of a build with empty caches, MiB."""

    modules: int
    """Space in Go's module cache."""
    cache: int
    """Space in Go's build cache."""
    programs: int
    """Space in .tools/go during linking."""


class Recipe(Closed):
    """A Go module of tools.yaml, and the programs that are built from it."""

    folder: str
    """Folder in ci/tools with go.mod and go.sum; `{minor}` is the selected minor version."""
    variable: str = ""
    """Environment variable that selects another minor version."""
    module: str
    """Go module; its version is the version of the programs."""
    programs: dict[str, str]
    """Package by program."""
    ask: tuple[str, ...] = ()
    """Arguments that print the version; if empty, the version is read from the binary."""
    answer: str = ""
    """Regular expression of the version in the output."""
    ldflags: str = ""
    """Options of the linker; `{version}`, `{major}` and `{minor}` are filled in."""
    tags: tuple[str, ...] = ()
    """Build tags."""
    cgo: bool = False
    """The build needs a C compiler."""
    group: str = ""
    """Group of commands that needs the tool: the group's own command builds it instead of `make tools`."""
    seconds: int
    """Duration of a build with empty caches on two busy cores."""
    disk: Disk
    """Disk space of the same build."""


class Fetched(Closed):
    """A program that the set-up fetches."""

    ask: tuple[str, ...]
    """Arguments that print the version."""
    answer: str
    """Regular expression of the version in the output."""


class Bundle(Closed):
    """CRDs in a Go module."""

    tool: str = ""
    """Recipe whose module has the CRDs; if empty, `module`, `version` and `sum` are required."""
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
    """Recipes by name, which is also their folder in .tools/go."""
    fetched: dict[str, Fetched]
    """Fetched programs by name."""
    crds: dict[str, Bundle]
    """Bundles by name."""

    @model_validator(mode="after")
    def _each_program_is_made_once(self) -> Self:
        names = [*self.fetched, *(program for recipe in self.modules.values() for program in recipe.programs)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"several recipes for {', '.join(twice)}")
        return self
