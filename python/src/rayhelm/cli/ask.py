"""Answers by flags and questions: a flag wins, a question has a default, and `--yes` takes all defaults."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import typer

from rayhelm.errors import UsageError

__all__ = ["Asker"]

Value = TypeVar("Value")


@dataclass(frozen=True)
class Asker:
    """Asks for what flags do not say."""

    takes_defaults: bool
    """`--yes`."""

    def ask(
        self, flag: str, given: Value | None, question: str, default: Value | None, check: Callable[[str], Value]
    ) -> Value:
        """Return the checked answer. A wrong flag is a usage error, a wrong answer is asked again."""
        if given is not None or self.takes_defaults:
            answer = default if given is None else given
            if answer is None:
                raise UsageError(f"`{flag}` has no default. fix: rayhelm init {flag} VALUE")
            try:
                return check(str(answer))
            except ValueError as error:
                raise UsageError(f"{flag}: {error}") from None
        try:
            found: Value = typer.prompt(
                question, default=default, value_proc=lambda text: _check(check, text), err=True
            )
        except typer.Abort:
            if sys.stdin.isatty():
                raise
            message = f"no answer to: {question}. fix: rayhelm init {flag} VALUE, or --yes for all defaults"
            raise UsageError(message) from None
        return found


def _check(check: Callable[[str], Value], text: object) -> Value:
    try:
        return check(str(text))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
