"""What can go wrong, and the exit code of each.

RayhelmError
 ├─ FleetError     1   the fleet, the values or a catalog entry has problems; carries each one
 ├─ UsageError     2   the command was called wrongly
 └─ MissingError   3   a tool, package, cluster or machine feature is missing; says how to get it
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["FleetError", "MissingError", "Problem", "RayhelmError", "UsageError"]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with an input file, told so that it can be fixed at once."""

    message: str
    """What is wrong, in a sentence."""
    path: str = ""
    """Where in the document, dotted: `models.chat.slo.ttft`."""
    file: str = ""
    line: int | None = None
    """1-based line of the key in `file`."""
    fix: str = ""
    """What to write instead: YAML that can be pasted, or a command."""
    rule: str = ""
    """Identifier of the rule that was broken, when it stands in the rules file."""

    @property
    def place(self) -> str:
        if not self.file:
            return ""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        where = " ".join(part for part in (f"{self.place}:" if self.place else "", self.path) if part)
        text = f"{where}: {self.message}" if self.path else f"{where} {self.message}".strip()
        return f"{text}\n{_indented(self.fix)}" if self.fix else text

    def as_dict(self) -> dict[str, str | int | None]:
        return {
            "message": self.message,
            "path": self.path,
            "file": self.file,
            "line": self.line,
            "fix": self.fix,
            "rule": self.rule,
        }


class RayhelmError(Exception):
    """A failure that is told to the user in words, never as a traceback."""

    exit_code = 1


class FleetError(RayhelmError):
    """An input has problems."""

    exit_code = 1

    def __init__(self, problems: Sequence[Problem] | Problem | str) -> None:
        if isinstance(problems, str):
            problems = Problem(problems)
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class UsageError(RayhelmError):
    """A command was called wrongly."""

    exit_code = 2


class MissingError(RayhelmError):
    """Something outside rayhelm is missing; `how` says how to get it."""

    exit_code = 3

    def __init__(self, what: str, how: str = "") -> None:
        self.what, self.how = what, how
        super().__init__(f"{what}\n{_indented(how)}" if how else what)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
