"""A Prometheus over the recorded run, with the series of the recording rules of its fleet."""

import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from rayhelm.deploy.render.files import render_fleet
from rayhelm.errors import RayhelmError
from rayhelm.observe.check import metrics_of
from rayhelm.observe.rules.files import build_rule_files
from rayhelm.processes import create_run_id, find_free_port, start, stop_run, wait_until
from testbed.live_metrics.recording.recorded import FLEET, Recorded
from testbed.tools import program

__all__ = ["Rule", "Times", "list_recording_rules", "read_rules", "serve_folder", "serve_recorded", "serve_samples"]

Rule = dict[str, Any]
TIMEOUT = 300.0
"""Seconds for Prometheus to start."""


@dataclass(frozen=True)
class Times:
    """Times at which rules are evaluated, Unix seconds."""

    start: float
    end: float
    step: int


@contextmanager
def serve_recorded(recorded: Recorded, folder: Path) -> Iterator[str]:
    """Yield the URL of a Prometheus with the run and its recorded series; data are in `folder`.

    Raises MissingError without Prometheus, and RayhelmError with the output of promtool if it fails.
    """
    times = Times(recorded.start, recorded.start + recorded.steps * recorded.step, recorded.step)
    with serve_samples(recorded.samples(), folder, list_recording_rules(read_rules()), times) as url:
        yield url


@contextmanager
def serve_samples(
    samples: Iterable[str], folder: Path, rules: Sequence[Sequence[Rule]] = (), times: Times | None = None
) -> Iterator[str]:
    """Yield the URL of a Prometheus with samples, each a line `name{label="value"} number seconds`, and with the series
    of recording rules at `times`. A rule reads series of earlier levels of `rules`.

    Raises MissingError without Prometheus, and RayhelmError with the output of promtool if it fails.
    """
    by_name = sorted(samples, key=lambda line: line.partition("{")[0])
    (folder / "samples").write_text("\n".join([*by_name, "# EOF", ""]))
    (folder / "prometheus.yaml").write_text("{}")
    _promtool("openmetrics", folder / "samples", folder / "data")
    for number, level in enumerate(rules if times else ()):
        assert times
        file = folder / f"rules-{number}.yaml"
        group = {"name": "recorded", "interval": f"{times.step}s", "rules": list(level)}
        file.write_text(yaml.safe_dump({"groups": [group]}))
        # Prometheus reads new blocks when it starts.
        with serve_folder(folder) as url:
            options = [f"--start={times.start:.0f}", f"--end={times.end:.0f}", f"--eval-interval={times.step}s"]
            _promtool("rules", f"--url={url}", *options, f"--output-dir={folder / 'data'}", file)
    with serve_folder(folder) as url:
        yield url


@contextmanager
def serve_folder(folder: Path) -> Iterator[str]:
    """Yield the URL of a Prometheus with `prometheus.yaml` of a folder, and with its samples in `data`."""
    run, url = create_run_id(), f"http://127.0.0.1:{find_free_port(set())}"
    command = [
        str(program("prometheus")),
        f"--config.file={folder}/prometheus.yaml",
        f"--storage.tsdb.path={folder}/data",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address={url.removeprefix('http://')}",
    ]
    try:
        process = start(command, run=run, log=folder / "log")
        wait_until(lambda: _is_ready(url), what="Prometheus", timeout=TIMEOUT, needs=[process])
        yield url
    finally:
        stop_run(run)


def read_rules(fleet: Path = FLEET) -> Mapping[str, list[Rule]]:
    """Return the rules of a fleet by the name of their file."""
    files = build_rule_files(render_fleet(fleet))
    return {
        name: [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
        for name, text in files.items()
    }


def list_recording_rules(files: Mapping[str, list[Rule]]) -> list[list[Rule]]:
    """List the recording rules in levels: a rule reads series of earlier levels only."""
    left = [rule for rules in files.values() for rule in rules if "record" in rule]
    levels: list[list[Rule]] = []
    while left:
        open_names = {rule["record"] for rule in left}
        level = [rule for rule in left if not metrics_of(rule["expr"]) & open_names]
        if not level:
            raise RayhelmError(f"recording rules that read each other: {', '.join(sorted(open_names))}")
        levels.append(level)
        left = [rule for rule in left if rule not in level]
    return levels


def _is_ready(url: str) -> bool | None:
    try:
        return httpx.get(f"{url}/-/ready", trust_env=False).is_success or None
    except httpx.TransportError:
        return None


def _promtool(kind: str, *arguments: object) -> None:
    command = [str(program("promtool")), "tsdb", "create-blocks-from", kind, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RayhelmError(f"promtool tsdb create-blocks-from {kind} ends with {done.returncode}:\n{done.stderr}")
