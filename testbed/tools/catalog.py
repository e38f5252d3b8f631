"""Typed records of ci/tools/tools.yaml, each with the version that its go.mod pins."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import yaml
from pydantic import ValidationError

from rayhelm.errors import RayhelmError, UsageError
from rayhelm.facts.versions import versions
from testbed.tools.checkout import Checkout
from testbed.tools.recipes import Catalog, Recipe

__all__ = ["Module", "Tool", "catalog", "module", "tool", "tools"]


@dataclass(frozen=True)
class Module:
    """A recipe with its selected folder."""

    name: str
    recipe: Recipe
    folder: Path

    @cached_property
    def go_mod(self) -> str:
        return (self.folder / "go.mod").read_text()

    @cached_property
    def version(self) -> str:
        """Version of the programs, without `v`."""
        return self._read(rf"^(?:require )?\s*{re.escape(self.recipe.module)} v(\S+)")

    @cached_property
    def go(self) -> str:
        """Oldest version of Go that builds the module."""
        return self._read(r"^go (\S+)")

    @cached_property
    def sum(self) -> str:
        """Go's checksum of the module's archive."""
        line = re.search(
            rf"^{re.escape(self.recipe.module)} v{re.escape(self.version)} (h1:\S+)",
            (self.folder / "go.sum").read_text(),
            re.MULTILINE,
        )
        if not line:
            raise RayhelmError(f"{self.folder / 'go.sum'} has no checksum of {self.recipe.module} v{self.version}")
        return line[1]

    @property
    def ldflags(self) -> str:
        major, minor, *_ = self.version.split(".")
        return self.recipe.ldflags.format(version=self.version, major=major, minor=minor)

    @property
    def pin(self) -> str:
        """Digest of all inputs of a build."""
        own = sorted(path.name for path in self.folder.glob("*.go") if path.name != "tools.go")
        parts = [(self.folder / name).read_bytes() for name in ("go.mod", "go.sum", *own)]
        reported = [self.ldflags, *self.recipe.tags]
        return hashlib.sha256(b"\0".join([*parts, *(word.encode() for word in reported)])).hexdigest()

    def home(self, checkout: Checkout) -> Path:
        """Return the folder of the built programs."""
        return checkout.store / "go" / self.name / self.version

    def _read(self, pattern: str) -> str:
        line = re.search(pattern, self.go_mod, re.MULTILINE)
        if not line:
            raise RayhelmError(f"{self.folder / 'go.mod'} has no line like {pattern}")
        return line[1]


@dataclass(frozen=True)
class Tool:
    """A program that tests find by name."""

    name: str
    version: str
    """Pinned version, without `v`."""
    ask: tuple[str, ...]
    answer: str
    module: Module | None
    """None for programs that the set-up fetches."""

    @property
    def group(self) -> str:
        """Group of commands that needs the tool; empty for tools of `make tools`."""
        return self.module.recipe.group if self.module else ""

    @property
    def variable(self) -> str:
        """Environment variable that names the program's path."""
        return self.name.upper().replace("-", "_")

    @property
    def minor(self) -> str:
        return ".".join(self.version.split(".")[:2])


def catalog(checkout: Checkout) -> Catalog:
    """Read tools.yaml. Raises RayhelmError if it is invalid."""
    path = checkout.data / "tools.yaml"
    try:
        return _parse(path.read_bytes())
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise RayhelmError(f"{path}: {error}") from error


@cache
def _parse(text: bytes) -> Catalog:
    return Catalog.model_validate(yaml.safe_load(text))


def module(name: str, checkout: Checkout) -> Module:
    """Return a module. Raises UsageError if the requested minor version has no folder."""
    recipe = catalog(checkout).modules[name]
    if not recipe.variable:
        return Module(name, recipe, checkout.data / recipe.folder)
    minor = checkout.env.get(recipe.variable) or versions().kubernetes.default
    folder = checkout.data / recipe.folder.format(minor=minor)
    there = sorted(path.name.removeprefix(f"{name}-") for path in checkout.data.glob(recipe.folder.format(minor="*")))
    if minor not in there:
        raise UsageError(f"{recipe.variable}={minor}: there is no ci/tools/{folder.name}; choose {' or '.join(there)}")
    return Module(name, recipe, folder)


def tools(checkout: Checkout) -> dict[str, Tool]:
    """Return every tool by name, in the order of tools.yaml."""
    known = catalog(checkout)
    built = {
        program: Tool(program, source.version, recipe.ask, recipe.answer, source)
        for name, recipe in known.modules.items()
        for source in [module(name, checkout)]
        for program in recipe.programs
    }
    fetched = {
        name: Tool(name, versions().binaries[name].version, how.ask, how.answer, None)
        for name, how in known.fetched.items()
    }
    return built | fetched


def tool(name: str, checkout: Checkout) -> Tool:
    """Return a tool by name. Raises UsageError for an unknown name."""
    known = tools(checkout)
    if name not in known:
        raise UsageError(f"unknown tool {name}; known: {', '.join(known)}")
    return known[name]
