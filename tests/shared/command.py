"""Runs the command in this process, as a shell would see it."""

import sys
from typing import NamedTuple

import pytest

from rayhelm.cli import main

__all__ = ["Answer", "run"]


class Answer(NamedTuple):
    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Answer:
    monkeypatch.setattr(sys, "argv", ["rayhelm", *arguments])
    capsys.readouterr()
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    captured = capsys.readouterr()
    return Answer(code, captured.out, captured.err)
