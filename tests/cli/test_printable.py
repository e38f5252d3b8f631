"""Control characters of files do not reach the terminal."""

import io
import json
import sys
from pathlib import Path

import pytest
from rich.table import Table

from rayhelm.cli.output import console
from rayhelm.cli.printable import escape_output
from rayhelm.deploy.control_characters import escape_controls
from shared.command import run

FLEET = """
fleet: colors
clusters:
  main: {apiServer: {cidrs: [10.0.0.1/32]}}
pools:
  gpu: {gpu: L4-24GB, nodes: 2, gpusPerNode: 1}
models:
  chat: {source: Qwen/Qwen3-8B, context: 8192, unpinnedReason: REASON}
"""
REASON = r'"a \u001b[31mred \u009b reason"'
SHOWN = r"a \x1b[31mred \u009b reason"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET.replace("REASON", REASON))
    return path


@pytest.mark.parametrize(
    "arguments",
    [["plan", "FLEET"], ["plan", "FLEET", "--no-reasons"], ["lint", "FLEET", "--no-serve"], ["render", "FLEET"]],
)
def test_control_characters_are_escaped_in_messages(
    fleet: Path,
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(fleet.parent)
    shown = run(capsys, monkeypatch, *[str(fleet) if word == "FLEET" else word for word in arguments])
    assert SHOWN in shown.out + shown.err
    assert not set("\x1b\x9b") & set(shown.out + shown.err)


def test_control_characters_are_escaped_in_a_refusal(
    fleet: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.write_text(fleet.read_text().replace("chat:", r'"chat\u001b[31m":'))
    shown = run(capsys, monkeypatch, "plan", str(fleet))
    assert shown.code == 1
    assert r"chat\x1b[31m" in shown.err
    assert "\x1b" not in shown.err


def test_tables_escape_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("head\x07")
    table.add_row("cell\x1b[2J")
    console().print(table)
    shown = capsys.readouterr().out
    assert r"head\x07" in shown
    assert r"cell\x1b[2J" in shown


@pytest.mark.parametrize("text", ["a\tb\n", "a\r\n", "naïve \N{GREEK SMALL LETTER BETA}", "\N{PARTY POPPER} 日本語"])
def test_text_without_control_characters_stays(text: str) -> None:
    assert escape_controls(text) == text


def test_carriage_return_within_a_line_is_escaped() -> None:
    assert escape_controls("shown\rhidden") == r"shown\x0dhidden"


@pytest.mark.parametrize("text", ["\x9b31m", "\u202e desrever", "\u2066"])
def test_json_with_control_characters_keeps_its_value(text: str) -> None:
    stored = json.dumps(text, ensure_ascii=False)
    assert escape_controls(stored) != stored
    assert json.loads(escape_controls(stored)) == text


def test_characters_that_the_encoding_lacks_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "naïve \N{PARTY POPPER} 日"
    written = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", written)
    with escape_output():
        print(json.dumps(text, ensure_ascii=False), flush=True)
        console().print(text)
    first, second = written.buffer.getvalue().decode("cp1252").splitlines()
    assert first == r'"naïve \ud83c\udf89 \u65e5"'
    assert json.loads(first) == text
    assert second == first.strip('"')
