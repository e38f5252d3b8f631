"""Logs of containers through a real OpenTelemetry Collector into a sink, with the example of docs/tasks."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from testbed.tools import program

__all__ = ["EXAMPLES", "Container", "LogPipeline", "merge_examples", "run_pipeline"]

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs/tasks/collect-logs"
NOT_BUILT_IN = ("k8sattributes",)
"""Processors of the example that need an API server."""
Record = dict[str, Any]


@dataclass(frozen=True)
class Container:
    """A container whose output the container runtime writes to a file of the node."""

    file: Path

    def write(self, lines: Sequence[str]) -> None:
        """Append lines of stdout in the format of container runtimes (CRI)."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        with self.file.open("a") as file:
            file.writelines(f"{now} stdout F {line.rstrip()}\n" for line in lines)


@dataclass(frozen=True)
class LogPipeline:
    """A collector and a sink."""

    pods: Path
    received: Path

    def add_container(self, namespace: str, pod: str, name: str) -> Container:
        folder = self.pods / f"{namespace}_{pod}_00000000-0000-0000-0000-000000000000" / name
        folder.mkdir(parents=True, exist_ok=True)
        return Container(folder / "0.log")

    @property
    def records(self) -> list[Record]:
        """Records that the sink got so far."""
        *lines, _ = self.received.read_text().split("\n")
        return [json.loads(line) for line in lines[1:]]

    def wait_for(self, is_enough: Callable[[list[Record]], bool], seconds: float = 180) -> list[Record]:
        """Return the records once they are enough, or all records after `seconds`."""
        deadline = time.monotonic() + seconds
        while not is_enough(self.records) and time.monotonic() < deadline:
            time.sleep(0.2)
        return self.records


def merge_examples(*names: str) -> dict[str, Any]:
    """Return the values of several files, as Helm merges them."""
    merged: dict[str, Any] = {}
    for name in names:
        merged = _merge(merged, yaml.safe_load((EXAMPLES / name).read_text()))
    return merged


@contextmanager
def run_pipeline(folder: Path) -> Iterator[LogPipeline]:
    """Run the collector with the example for Loki, on files of `folder`, until the end of the block.

    Raises MissingError if the collector is not built.
    """
    collector = program("otelcol")
    pipeline = LogPipeline(folder / "pods", folder / "received.jsonl")
    pipeline.pods.mkdir(parents=True)
    with ExitStack() as stack:
        out = stack.enter_context(pipeline.received.open("w"))
        _start(stack, [sys.executable, "-m", "testbed.log_sink"], cwd=ROOT, stdout=out)
        url = _wait_for_url(pipeline.received)
        config = folder / "collector.yaml"
        config.write_text(yaml.safe_dump(_adapt(merge_examples("otel.yaml", "otel-loki.yaml")["config"], folder, url)))
        log = stack.enter_context((folder / "collector.log").open("w"))
        _start(stack, [str(collector), "--config", str(config)], stdout=log, stderr=log)
        yield pipeline


def _adapt(config: dict[str, Any], folder: Path, url: str) -> dict[str, Any]:
    """Replace what is of a cluster: paths of the node, the address of Loki, and what the chart's presets add."""
    files = config["receivers"]["filelog"]
    files["include"] = [path.replace("/var/log/pods", str(folder / "pods")) for path in files["include"]]
    files |= {"start_at": "beginning", "poll_interval": "100ms"}
    kept = {name: value for name, value in config["processors"].items() if name not in NOT_BUILT_IN}
    config["processors"] = {**kept, "batch": {"timeout": "100ms"}}
    config["exporters"]["otlphttp"]["endpoint"] = url + "/otlp"
    config["service"]["pipelines"]["logs"] |= {"receivers": ["filelog"], "processors": list(config["processors"])}
    config["service"]["telemetry"] = {"metrics": {"level": "none"}}
    return config


def _start(stack: ExitStack, command: Sequence[str], **options: Any) -> None:
    process = stack.enter_context(subprocess.Popen(command, text=True, **options))
    stack.callback(process.terminate)


def _wait_for_url(received: Path, seconds: float = 180) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        line, end, _ = received.read_text().partition("\n")
        if end:
            return line
        time.sleep(0.1)
    raise TimeoutError("the sink did not start")


def _merge(base: Any, over: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    return {**base, **{key: _merge(base.get(key), value) for key, value in over.items()}}
