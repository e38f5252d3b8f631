"""A real Prometheus, over samples that a test writes down or over targets that it scrapes."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from shared.built import built_program
from testbed.live_metrics.recording import server
from testbed.live_metrics.recording.server import Rule, Times

__all__ = ["serve_samples", "serve_targets"]


@contextmanager
def serve_samples(
    home: Path, samples: Iterable[str], rules: Sequence[Sequence[Rule]] = (), times: Times | None = None
) -> Iterator[str]:
    """Yield the URL of a Prometheus with these samples, each a line `name{label="value"} number seconds`, and with the
    series of recording rules. Skips the test where Prometheus is not built."""
    built_program("prometheus"), built_program("promtool")
    with server.serve_samples(samples, home, rules, times) as url:
        yield url


@contextmanager
def serve_targets(home: Path, jobs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the URL of a Prometheus that scrapes these jobs each second. Skips the test where it is not built."""
    built_program("prometheus")
    home.mkdir()
    (home / "prometheus.yaml").write_text(
        yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [*jobs]})
    )
    with server.serve_folder(home) as url:
        yield url
