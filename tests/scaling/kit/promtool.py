"""promtool: whether it takes a query, and what the query answers over series that a test writes down."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from shared.built import built_program

__all__ = ["Answer", "Series", "answers", "check_expressions", "check_scrapes"]


@dataclass(frozen=True)
class Series:
    """One series, in promtool's notation: `1+1x10` counts up from 1, `_x4` is four samples that are not there."""

    name: str
    values: str
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What a query has to answer at one time: a value by labels, which may be none."""

    seconds: int
    values: dict[tuple[tuple[str, str], ...], float]


def answers(folder: Path, query: str, series: list[Series], *expected: Answer, interval: str = "15s") -> None:
    """Raises AssertionError with promtool's words where the query answers something else."""
    test = {
        "interval": interval,
        "input_series": [{"series": _named(item.name, item.labels), "values": item.values} for item in series],
        "promql_expr_test": [
            {
                "expr": query,
                "eval_time": f"{answer.seconds}s",
                "exp_samples": [
                    {"labels": _named("", dict(labels)), "value": value} for labels, value in answer.values.items()
                ],
            }
            for answer in expected
        ],
    }
    _run("test", "rules", _written(folder / "test.yaml", {"tests": [test], "fuzzy_compare": True}))


def check_expressions(folder: Path, queries: dict[str, str]) -> None:
    """Raises AssertionError where promtool does not take one of them."""
    rules = [{"record": f"checked:{name}", "expr": query} for name, query in queries.items()]
    _run("check", "rules", _written(folder / "rules.yaml", {"groups": [{"name": "checked", "rules": rules}]}))


def check_scrapes(folder: Path, scrape_configs: str) -> None:
    """Raises AssertionError where Prometheus would not take the file among its `scrape_config_files`."""
    (folder / "scrapes.yaml").write_text(scrape_configs)
    _run("check", "config", _written(folder / "prometheus.yaml", {"scrape_config_files": ["scrapes.yaml"]}))


def _run(*arguments: str | Path) -> None:
    done = subprocess.run([built_program("promtool"), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _written(path: Path, content: Any) -> Path:
    path.write_text(yaml.safe_dump(content))
    return path


def _named(name: str, labels: dict[str, str]) -> str:
    inside = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{inside}}}"
