"""Cases: series over time, and the alerts that fire at one time. promtool evaluates all rules at each step."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

import yaml

from rayhelm.observe.rules.alerts import Alert, AlertCase
from rayhelm.observe.rules.runbooks import find_variables
from shared.built import built_program

__all__ = ["LABELS", "Case", "Samples", "case_of", "check_rules", "run_cases"]

SERVICE = 'job="ray",instance="a",namespace="search",rayhelm_dev_service="chat"'
GATEWAY = 'job="gateway",instance="g",namespace="gateway",rayhelm_dev_gateway="gateway"'
LABELS = {
    "S": SERVICE,
    "M": f'{SERVICE},model_name="llama"',
    "E": f'{SERVICE},application="llama",deployment="LLMServer:llama"',
    "G": GATEWAY,
    "K": 'namespace="search",name="chat"',
}
"""What `$S` and the others stand for."""
TARGETS = {f"up{{{SERVICE}}}": "1x2000", f"up{{{GATEWAY}}}": "1x2000"}
"""Targets that are there unless a case has targets of its own."""

Samples = Mapping[str, str]
"""Values in the notation of promtool, by series."""


@dataclass(frozen=True)
class Case:
    """One case of a test file."""

    name: str
    series: Samples
    expected: dict[str, dict[str, float | None]]
    """Values by query, and by time; None for a query without a result."""
    step: str = "1m"
    """Time between two samples."""
    evaluate: str = ""
    """Time between two evaluations of the rules; empty for `step`."""
    labels: dict[str, str] = field(default_factory=dict)


def case_of(alert: Alert, kind: str) -> Case:
    """A case of an alert's own file: `firing`, `firing_too`, `silent` or `idle`."""
    given: AlertCase = getattr(alert.tests, kind)
    fires = kind.startswith("firing")
    query = firing(alert.name, given.labels if fires else {}, find_variables(alert).values() if fires else ())
    expected: dict[str, dict[str, float | None]] = {query: {given.at: 1.0 if fires else 0.0}}
    return Case(f"{alert.name} {kind}", given.series, expected, alert.tests.step)


def firing(name: str, labels: Mapping[str, str] | None = None, present: Iterable[str] = ()) -> str:
    """Number of firing alerts with these labels, and with any value of those in `present`; 0 if there is none."""
    matchers = "".join(f',{label}="{value}"' for label, value in (labels or {}).items())
    matchers += "".join(f',{label}!=""' for label in present)
    return f'count(ALERTS{{alertname="{name}",alertstate="firing"{matchers}}}) or vector(0)'


def run_cases(folder: Path, files: Mapping[str, str], cases: Sequence[Case]) -> None:
    """Raise AssertionError with promtool's message if a result is another one."""
    program = built_program("promtool")
    for name, text in files.items():
        (folder / name).write_text(text)
    for number, case in enumerate(cases):
        # The order of the files is that of their groups: recorded series before the rules that use them.
        content = {
            "rule_files": list(files),
            "evaluation_interval": case.evaluate or case.step,
            "fuzzy_compare": True,
            "tests": [_test(case)],
        }
        path = folder / f"test-{number}.yaml"
        path.write_text(yaml.safe_dump(content))
        done = subprocess.run([program, "test", "rules", path], capture_output=True, text=True)
        assert done.returncode == 0, f"{case.name}\n{done.stdout}{done.stderr}"


def check_rules(folder: Path, files: Mapping[str, str]) -> None:
    """Raise AssertionError with promtool's message if it refuses a file, or finds a fault in it."""
    for name, text in files.items():
        (folder / name).write_text(text)
    command = [built_program("promtool"), "check", "rules", "--lint-fatal", *(folder / name for name in files)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _test(case: Case) -> dict[str, Any]:
    series = {Template(name).substitute(LABELS): values for name, values in case.series.items()}
    if not any(name.startswith("up{") for name in series):
        series = {**TARGETS, **series}
    return {
        "name": case.name,
        "interval": case.step,
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": query,
                "eval_time": at,
                "exp_samples": [] if value is None else [{"labels": "{}", "value": value}],
            }
            for query, times in case.expected.items()
            for at, value in times.items()
        ],
    }
