"""Input that is not a fleet file, and the message for it."""

from pathlib import Path

import pytest

from rayhelm.errors import FleetError
from rayhelm.fleet.load import load_fleet
from shared.small_fleet import the_problem


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        ("", "the file is empty", None),
        ("# nothing\n", "the file is empty", None),
        ("- a\n", "not a map", 1),
        ("a: [1\nb: 2\n", "not valid YAML", 2),
        ("a: 1\n---\nb: 2\n", "several documents", 3),
        ("fleet: a\nfleet: b\n", "is a duplicate; it is first in line 1", 2),
        ("? [a]\n: b\n", "a key must be plain text", 1),
        ("a: !!python/object:os.system x\n", "is not supported", 1),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "merge keys", 3),
        ("tenants: &a {x: *a}\n", "an alias stands inside of what it names", 1),
        ("a:\n  b: " + "[" * 1000 + "]" * 1000 + "\n", "nests deeper than 32", 2),
        ("a: " + "[" * 100_000, "nests deeper than 32", 1),
        ("a: 1\nb: \x01\n", "a control character", 2),
        ("a:\n\tb: 1\n", "not valid YAML", 2),
    ],
)
def test_yaml_that_is_not_a_fleet_is_refused(text: str, says: str, line: int | None) -> None:
    problem = the_problem(text)
    assert says in problem.message
    assert problem.line == line
    assert str(problem.fix)


def test_fix_of_a_tab_names_spaces() -> None:
    assert "never with tabs" in str(the_problem("a:\n\tb: 1\n").fix)


def test_yaml_alias_bomb_is_refused() -> None:
    text = "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
    for before, here in zip("abcdef", "bcdefg", strict=True):
        text += f"{here}: &{here} [{','.join([f'*{before}'] * 10)}]\n"
    assert "aliases unfold" in the_problem(text).message


def test_file_above_8_mib_is_refused_before_parsing(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("a: b\n" * 2_200_000)
    with pytest.raises(FleetError, match="at most 8 MiB") as caught:
        load_fleet(path)
    assert caught.value.problems[0].line == 1
    assert caught.value.problems[0].fix


@pytest.mark.parametrize("kind", ["missing", "folder", "binary", "long"])
def test_path_that_cannot_be_read_is_reported(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "fleet.yaml"
    says = {
        "missing": "no such file",
        "folder": "the folder has no `fleet.yaml`",
        "binary": "not UTF-8",
        "long": "too long",
    }[kind]
    if kind == "folder":
        path.mkdir()
    if kind == "binary":
        path.write_bytes(b"\xff\xfe\x00")
    if kind == "long":
        path = tmp_path / ("f" * 300)
    with pytest.raises(FleetError, match=says) as caught:
        load_fleet(path)
    assert caught.value.problems[0].fix
