"""The prose check finds what should not be written, and allows only what has a reason."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

CI = Path(__file__).resolve().parents[2] / "ci"


@pytest.fixture
def prose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The check over a small repository, with its own words."""
    monkeypatch.syspath_prepend(str(CI))
    module = importlib.import_module("prose.__main__")
    folder = tmp_path / "words"
    folder.mkdir()
    (folder / "words.txt").write_text((CI / "prose" / "words.txt").read_text())
    (folder / "phrases.txt").write_text((CI / "prose" / "phrases.txt").read_text())
    (folder / "skip").write_text("words/* | the words\n")
    (folder / "allowed").write_text("# nothing\n")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "HERE", folder)
    return module


def run(prose: ModuleType, capsys: pytest.CaptureFixture[str], **files: str) -> tuple[int, list[str]]:
    for name, text in files.items():
        (prose.ROOT / f"{name}.md").write_text(text)
    subprocess.run(["git", "-C", prose.ROOT, "add", "."], check=True)
    return prose.main([]), capsys.readouterr().out.splitlines()


def test_prose_check_passes_on_plain_text(prose: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(prose, capsys, page="The gateway retries the request.\n") == (0, [])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The door answers.", "'door'"),
        ("Whoever calls it waits.", "'Whoever'"),
        ("limits.lostAnswers: true, callersOf: 1", "'callers'"),
        ("def open_door(): ...", "'door'"),
        ("A way past\nthe gateway.", "'way past'"),
        ("It names the groups that there are.", "'that there are'"),
        ("The table has the rule and whose it is.", "'whose it is'"),
        ("A second build goes on where it stopped.", "'goes on where'"),
        ("The start did not come to its end.", "'come to its end'"),
        ("A version as helm takes it.", "'as helm takes it'"),
        ("The color is the colour.", "'colour'"),
        ("It recieves a request.", "'recieves'"),
    ],
)
def test_prose_check_fails_on_a_planted_sentence(
    prose: ModuleType, capsys: pytest.CaptureFixture[str], text: str, found: str
) -> None:
    code, lines = run(prose, capsys, page=f"First line.\n{text}\n")
    assert code == 1
    assert any(line.startswith("page.md:2: ") and found in line for line in lines), lines


def test_prose_check_reads_file_names(prose: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = run(prose, capsys, door="Plain.\n")
    assert (code, lines[0].split(":")[0]) == (1, "door.md")


def test_prose_check_allows_a_row_with_a_reason(prose: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    (prose.HERE / "allowed").write_text("page.md | door | the name of a product\n")
    assert run(prose, capsys, page="The door.\n") == (0, [])


def test_prose_check_refuses_a_row_without_a_reason(prose: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    (prose.HERE / "allowed").write_text("page.md | door\n")
    with pytest.raises(SystemExit, match=r"allowed:1: 3 columns"):
        run(prose, capsys, page="The door.\n")


def test_prose_check_fails_on_a_row_that_allows_nothing(prose: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    (prose.HERE / "allowed").write_text("page.md | door | no longer there\n")
    code, lines = run(prose, capsys, page="Plain.\n")
    assert (code, lines) == (1, ["ci/prose/allowed: `page.md | door` allows nothing: remove the row"])


def test_prose_check_runs_as_a_module() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "prose", "ci/prose"], cwd=CI, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_names_check_finds_a_class_name_that_exists_twice(prose: ModuleType, tmp_path: Path) -> None:
    names = importlib.import_module("prose.names")
    folder = tmp_path / "python/src"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("class Tenant: ...\nclass _Private: ...\n")
    assert list(names.find_repeated_classes(tmp_path)) == []
    (folder / "b.py").write_text("class Tenant: ...\nclass _Private: ...\n")
    assert list(names.find_repeated_classes(tmp_path)) == [
        "class Tenant exists 2 times: python/src/a.py:1, python/src/b.py:1"
    ]


def test_names_check_finds_a_test_name_of_81_characters(prose: ModuleType, tmp_path: Path) -> None:
    names = importlib.import_module("prose.names")
    (tmp_path / "tests").mkdir()
    path = tmp_path / "tests/test_a.py"
    path.write_text(f"def test_{'a' * 75}(): ...\n")
    assert list(names.find_wrong_tests(tmp_path)) == []
    path.write_text(f"def test_{'a' * 76}(): ...\n")
    (problem,) = names.find_wrong_tests(tmp_path)
    assert problem.startswith("tests/test_a.py:1: test_aaa")


@pytest.mark.parametrize("name", ["test_a_gateway_retries", "test_an_edit_is_refused", "test_the_plan_fits"])
def test_names_check_finds_a_test_name_with_an_article(prose: ModuleType, tmp_path: Path, name: str) -> None:
    names = importlib.import_module("prose.names")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_one.py").write_text(f"def {name}(): ...\n")
    (problem,) = names.find_wrong_tests(tmp_path)
    assert f"{name} begins with an article" in problem
