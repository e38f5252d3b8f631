"""Errors, their exit codes, and fixes.

RayhelmError
 ├─ FleetError     1   the fleet, the values or a catalog entry has problems; carries each one
 ├─ UsageError     2   the command was called with wrong arguments
 └─ MissingError   3   a tool, package, cluster or machine feature is missing; says how to get it
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

__all__ = [
    "Diagnostics",
    "Fix",
    "FleetError",
    "MissingError",
    "Problem",
    "RayhelmError",
    "Rewrite",
    "UsageError",
    "attempt",
    "each_problem",
    "run_all",
]

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Rewrite:
    """A value that is made from what the input has at `place`: None if it has nothing there."""

    place: tuple[str | int, ...]
    change: Callable[[Any], Any]


@dataclass(frozen=True)
class Fix:
    """A change of the input that solves a problem. It is data; `str` renders it for people, `as_dict` for programs.

    Four forms: `value` at `path`; the removal of the key at `path` (`Fix.removal`); a `command` to run; advice on text
    that has no keys, such as YAML that cannot be parsed (`Fix.advice`).
    """

    path: str = ""
    """Key to write, dotted: `models.chat.context`. Documents complete a path that is relative to the problem's."""
    value: Any = None
    """Value to write there; plain YAML data."""
    why: str = ""
    """What else the reader has to know; in the text a comment behind the YAML."""
    command: str = ""
    """Command that solves the problem, where no key does."""
    is_removal: bool = False
    """The key at `path` has to be removed."""
    replaces: str | None = None
    """Key to remove, because the one at `path` replaces it; a path like `path`."""
    steps: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """Names in `path`, where one of them may have dots; without the indexes of list items."""
    rewrite: "Rewrite | None" = field(default=None, compare=False, repr=False)
    """Makes `value` when the source map sees the problem."""

    @classmethod
    def removal(cls, path: str = "", why: str = "") -> "Fix":
        return cls(path, why=why, is_removal=True)

    @classmethod
    def advice(cls, why: str) -> "Fix":
        return cls(why=why)

    @property
    def is_advice(self) -> bool:
        return not (self.path or self.command or self.is_removal or self.rewrite) and self.value is None

    @property
    def key(self) -> str:
        """Last name in `path`, without the indexes of list items."""
        return self.steps[-1] if self.steps else self.path.rpartition(".")[2].partition("[")[0]

    def __str__(self) -> str:
        """YAML that can be pasted beside the keys of the same level, or a command. Advice is a comment."""
        if self.is_advice:
            return f"# {self.why}"
        if self.is_removal:
            return f"# remove `{self.key}`" + (f": {self.why}" if self.why else "")
        if not self.path and isinstance(self.value, dict):
            return _as_block(self.value)
        # The item of a list is shown as a list of its own, which can stand behind the key.
        value = [self.value] if self.path.endswith("]") else self.value
        text = self.command or _as_yaml(self.key, value)
        instead = f"instead of `{self._replaced_key}`" if self.replaces else ""
        comment = "; ".join(part for part in (instead, self.why) if part)
        return f"{text}   # {comment}" if comment else text

    @property
    def _replaced_key(self) -> str:
        """Last name in `replaces`; a name beside `path` can have dots."""
        old, above = self.replaces or "", f"{self.path.rpartition('.')[0]}."
        return old.removeprefix(above) if old.startswith(above) else old.rpartition(".")[2]

    def as_json(self) -> str:
        """The text for a JSON file."""
        import json

        return f'"{self.key}": {json.dumps(self.value)}'

    def text_for(self, path: str) -> str:
        """The text in a message about the key at `path`: with the keys above, where it belongs to another part."""
        above = self._above
        near = (path, path.rpartition(".")[0])
        if self.command or self.is_removal or not above or not path or path == self.path or above in near:
            return str(self)
        steps = self.steps[:-1] or [step.partition("[")[0] for step in above.split(".")]
        if self.replaces == path:  # a key below one beside it, or one of another part
            beside = near[1].count(".") + 1
            steps = steps[beside:] if above.startswith(f"{near[1]}.") and not self.steps else []
        lines = str(self)
        for step in reversed(steps):
            lines = f"{step}:\n" + "\n".join(f"  {line}" for line in lines.splitlines())
        return lines

    def comment_for(self, path: str) -> str:
        """The text as a comment below another fix of the key at `path`; with the path above, where it belongs to
        another part."""
        where = f", at {self._above}" if self.text_for(path) != str(self) else ""
        return f"# or{where}: {str(self).removeprefix('# ')}"

    @property
    def _above(self) -> str:
        return self.path.removesuffix(self.key).rstrip(".") if self.steps else self.path.rpartition(".")[0]

    def as_dict(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "value": self.value,
            "remove": self.is_removal,
            "replaces": self.replaces or "",
            "command": self.command,
            "why": self.why,
            "text": str(self),
        }


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with an input file, and how to fix it."""

    message: str
    """What is wrong, in a sentence."""
    path: str = ""
    """Where in the document, dotted: `models.chat.slo.ttft`."""
    file: str = ""
    line: int | None = None
    """1-based line of the key in `file`."""
    fix: Fix | str = ""
    """What to write instead. A text is shown as it is: charts write theirs as text, and Helm returns it."""
    rule: str = ""
    """Identifier of the rule that was broken, if it is in the rules file."""
    alternatives: tuple[Fix, ...] = ()
    """Other fixes, each to be used instead of `fix`. In the text they are comments, so that it stays valid YAML."""
    place: tuple[str | int, ...] | None = field(default=None, compare=False, repr=False)
    """`path` as steps, of a problem that a source map has not seen yet: file and line are missing, and paths of fixes
    are relative."""

    @property
    def location(self) -> str:
        """`FILE:LINE`."""
        if not self.file:
            return ""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        where = " ".join(part for part in (f"{self.location}:" if self.location else "", self.path) if part)
        text = f"{where}: {self.message}" if self.path else f"{where} {self.message}".strip()
        fixes = "\n".join([self.fix_text, *(fix.comment_for(self.path) for fix in self.alternatives)])
        return f"{text}\n  fix:\n{_indent(fixes)}" if self.fix else text

    @property
    def fix_text(self) -> str:
        """The fix for people: YAML that can be pasted, or a command."""
        if not isinstance(self.fix, Fix):
            return self.fix
        if self.file.endswith(".json") and self.fix.path and not self.fix.is_removal:
            return self.fix.as_json()
        return self.fix.text_for(self.path)

    def as_dict(self) -> dict[str, Any]:
        data = self.fix.as_dict() if isinstance(self.fix, Fix) else {}
        return {
            "message": self.message,
            "path": self.path,
            "file": self.file,
            "line": self.line,
            "fix": {**data, "text": self.fix_text} if self.fix else None,
            "alternatives": [fix.as_dict() for fix in self.alternatives],
            "rule": self.rule,
        }


class RayhelmError(Exception):
    """A failure that the user reads as a message, never as a traceback."""

    exit_code = 1


class FleetError(RayhelmError):
    """An input has problems."""

    exit_code = 1

    def __init__(self, problems: Sequence[Problem] | Problem | str) -> None:
        if isinstance(problems, str):
            problems = Problem(problems)
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class Diagnostics:
    """Problems of a stage: its steps run to the end, so that a person sees all problems together."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def add(self, problems: Iterable[Problem]) -> None:
        self.problems += [problem for problem in problems if problem not in self.problems]

    def run(self, step: Callable[[], Value]) -> Value | None:
        """Run a step, and return its result; None if it raised FleetError, whose problems are kept."""
        try:
            return step()
        except FleetError as error:
            self.add(error.problems)
        return None

    def check(self) -> None:
        """Raise FleetError if there are problems."""
        if self.problems:
            raise FleetError(self.problems)


def collect(step: Callable[[], Value]) -> tuple[Value | None, Sequence[Problem]]:
    """Run a step, and return its result, or None and the problems for which it raised FleetError."""
    found = Diagnostics()
    return found.run(step), found.problems


def attempt(step: Callable[[], Value]) -> Value | None:
    """Run a step, and return its result; None if it raised FleetError, whose problems no one needs."""
    return Diagnostics().run(step)


@contextmanager
def each_problem(change: Callable[[Problem], Problem]) -> Iterator[None]:
    """Change the problems of a FleetError of the block: what calls it knows the path, or a better fix."""
    try:
        yield
    except FleetError as error:
        raise FleetError([change(problem) for problem in error.problems]) from None


def run_all(steps: Mapping[Key, Callable[[], Value]]) -> dict[Key, Value]:
    """Run every step, and return the results by key. Raises one FleetError with the problems of all steps."""
    found = Diagnostics()
    results = {key: result for key, step in steps.items() if (result := found.run(step)) is not None}
    found.check()
    return results


class UsageError(RayhelmError):
    """A command was called with wrong arguments."""

    exit_code = 2


class MissingError(RayhelmError):
    """Something outside rayhelm is missing; `how` says how to get it, and `fixes` are those of its parts that are
    data."""

    exit_code = 3

    def __init__(self, what: str, how: str | Fix = "", *others: Fix) -> None:
        parts = [part for part in (how, *others) if part]
        self.what, self.how = what, "\n".join(map(str, parts))
        self.fixes = tuple(part for part in parts if isinstance(part, Fix))
        super().__init__(f"{what}\n{_indent(self.how)}" if self.how else what)


def _plain(value: Any) -> Any:
    """The value with whole numbers as people write them: 52, not 52.0."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _as_yaml(key: str, value: Any) -> str:
    """In one line, so that it can be pasted into either style of YAML."""
    import yaml

    flow = str(
        yaml.safe_dump([_plain(value)], default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000)
    )
    value_text = flow.strip()[1:-1]
    return f"{key}: {value_text}" if key else value_text


def _as_block(value: dict[str, Any]) -> str:
    """A whole file: one line for each record."""
    import yaml

    return str(
        yaml.safe_dump(_plain(value), default_flow_style=None, sort_keys=False, allow_unicode=True, width=10_000)
    ).strip()


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
