"""The tests' cache of helm's answers: the same command runs once, and what the answer depends on makes it another."""

import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared import helm_cache
from shared.helm_cache import HelmCache

HELM = """#!/bin/sh
echo call >>"$0.calls"
for last; do :; done
echo "rendered $2 with $(cat "$last")"
echo "read $last" >&2
exit "${HELM_FAILS:-0}"
"""

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]


@pytest.fixture
def helm(tmp_path: Path) -> Path:
    """A helm that prints its release and values, and counts its calls."""
    path = tmp_path / "bin" / "helm"
    path.parent.mkdir()
    path.write_text(HELM)
    path.chmod(0o755)
    return path


@pytest.fixture
def chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (chart := tmp_path / "charts" / "gateway" / "templates").mkdir(parents=True)
    (chart / "a.yaml").write_text("a")
    monkeypatch.setattr(helm_cache, "ROOT", tmp_path)
    monkeypatch.setattr(helm_cache, "charts_dir", lambda: tmp_path / "charts")
    return chart.parent


@pytest.fixture
def run(tmp_path: Path, helm: Path, chart: Path) -> Run:
    """Run `helm template` as a session of its own does, with values in a new temporary file."""

    def run_helm(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    def run(release: str = "chat", values: str = "{}", *options: str, **environment: str) -> Done:
        cache = HelmCache(tmp_path / "cache")
        cache.run_helm = run_helm
        file = tmp_path / f"values-{time.monotonic_ns()}.json"
        file.write_text(values)
        command = [str(helm), "template", release, str(chart), *options, "--values", str(file)]
        done = cache.run(command, os.environ | environment)
        assert str(file) in done.stderr
        return done

    return run


def calls(helm: Path) -> int:
    return len(Path(f"{helm}.calls").read_text().splitlines())


def test_helm_cache_answers_the_same_command_without_helm(run: Run, helm: Path) -> None:
    assert run().stdout == run().stdout == "rendered chat with {}\n"
    assert calls(helm) == 1


def test_helm_cache_answers_failures_too(run: Run, helm: Path) -> None:
    assert [run(HELM_FAILS="3").returncode for _ in range(2)] == [3, 3]
    assert calls(helm) == 1


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [(("other",), {}), (("chat", '{"a": 1}'), {}), (("chat", "{}", "--set", "a=1"), {}), ((), {"HELM_DEBUG": "1"})],
)
def test_helm_cache_runs_helm_for_another_command(
    run: Run, helm: Path, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    run()
    run(*arguments, **environment)
    assert calls(helm) == 2


def test_helm_cache_runs_helm_when_a_template_changed(run: Run, helm: Path, chart: Path) -> None:
    run()
    (chart / "templates" / "a.yaml").write_text("b")
    os.utime(chart / "templates" / "a.yaml", ns=(1, 1))
    run()
    (chart / "templates" / "b.yaml").write_text("")
    run()
    assert calls(helm) == 3


def test_helm_cache_keeps_no_answer_to_options_that_read_files(run: Run, helm: Path) -> None:
    run("chat", "{}", "--set-file", "a=b")
    run("chat", "{}", "--set-file", "a=b")
    assert calls(helm) == 2


def test_helm_cache_runs_helm_when_an_entry_is_damaged(run: Run, helm: Path, tmp_path: Path) -> None:
    run()
    (entry,) = (tmp_path / "cache").glob("*/*")
    entry.write_bytes(entry.read_bytes()[:10])
    assert run().stdout == "rendered chat with {}\n"
    assert calls(helm) == 2


def test_helm_cache_runs_helm_once_for_concurrent_sessions(run: Run, helm: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        outputs = {done.stdout for done in pool.map(lambda _: run(), range(40))}
    assert outputs == {"rendered chat with {}\n"}
    assert calls(helm) == 1
    assert len(list((tmp_path / "cache").glob("*/*"))) == 1


def test_helm_cache_removes_entries_that_were_not_used_for_a_week(run: Run, helm: Path, tmp_path: Path) -> None:
    run()
    run("other")
    old, kept = (tmp_path / "cache").glob("*/*")
    os.utime(old, (1, 1))
    HelmCache(tmp_path / "cache").prune()
    assert list((tmp_path / "cache").glob("*/*")) == [kept]
