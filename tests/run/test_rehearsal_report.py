"""The report of a rehearsal in each format."""

import io
import json
from typing import Any

from rich.console import Console

from rayhelm.run.rehearsal.load_client import RequestResult
from rayhelm.run.rehearsal.report import ChangeReport, PoolUsage, Report, RequestSummary, ServiceReport, list_failures
from rayhelm.run.rehearsal.report_page import format_markdown, print_report

NONE = RequestSummary.summarize([], [])


def seen(started: float = 0.0, seconds: float = 0.1, error: str = "") -> RequestResult:
    return RequestResult(started=started, seconds=seconds, target="chat", kind="short", version="", error=error)


def report(**change: Any) -> Report:
    gpus = PoolUsage(pool="gpu", gpu="L4-24GB", resource="nvidia.com/gpu", before=1, peak=2, after=1, capacity=2)
    usual = {
        "fleet": "small",
        "file": "fleet.yaml",
        "change": "new.yaml",
        "cluster": "main",
        "server": "https://10.0.0.1:6443",
        "context": "trial",
        "kuberay": "1.6.2",
        "services": (ServiceReport(name="one", models=("chat",), ready_seconds=52.6),),
        "changes": (
            ChangeReport(
                chart="ray-service",
                name="one",
                effect="new cluster",
                details=("its pods change",),
                switched_seconds=70.2,
                seconds=141.0,
            ),
        ),
        "gpus": (gpus,),
        "peak_clusters": 2,
        "peak_pods": 5,
        "peak_memory_gib": 18.5,
        "before": RequestSummary.summarize([seen(seconds=n / 100) for n in range(1, 101)], []),
        "during": RequestSummary.summarize([seen(seconds=0.5)], []),
        "failures": (),
        "warnings": (),
        "notes": ("chat: a tiny model replaces it",),
    }
    return Report.model_validate({**usual, **change})


def text(of: Report) -> str:
    out = io.StringIO()
    print_report(of, Console(file=out, width=120, highlight=False))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_text_format() -> None:
    assert (
        text(report())
        == """\
small, changed to new.yaml: no of 101 requests failed
cluster main, rehearsed on https://10.0.0.1:6443 (context trial) with KubeRay 1.6.2
peak: 2 Ray clusters, 5 pods with requests of 18.5 GiB

service  models  ready after
────────────────────────────
one      chat           53 s

changed          effect       switched after  complete after
────────────────────────────────────────────────────────────
ray-service one  new cluster            70 s           141 s

pool  GPUs of the real fleet  before  peak  after  capacity
───────────────────────────────────────────────────────────
gpu   L4-24GB                      1     2      1         2

requests           answered  failed     p50     p99  slowest
────────────────────────────────────────────────────────────
before                  100       0  0.51 s  1.00 s   1.00 s
during the change         1       0  0.50 s  0.50 s   0.50 s

what the change means
  ray-service one: its pods change

differences from the fleet
  chat: a tiny model replaces it"""
    )


def test_markdown_format() -> None:
    assert (
        format_markdown(report(change="", changes=(), during=None))
        == """\
### small: no of 100 requests failed

cluster main, rehearsed on https://10.0.0.1:6443 (context trial) with KubeRay 1.6.2
peak: 2 Ray clusters, 5 pods with requests of 18.5 GiB

| service | models | ready after |
| --- | --- | ---: |
| one | chat | 53 s |

| pool | GPUs of the real fleet | before | peak | after | capacity |
| --- | --- | ---: | ---: | ---: | ---: |
| gpu | L4-24GB | 1 | 2 | 1 | 2 |

| requests | answered | failed | p50 | p99 | slowest |
| --- | ---: | ---: | ---: | ---: | ---: |
| constant load | 100 | 0 | 0.51 s | 1.00 s | 1.00 s |

**Differences from the fleet**

* chat: a tiny model replaces it
"""
    )


def test_json_has_ok_and_can_be_read_back() -> None:
    data = json.loads(report().model_dump_json())
    assert data.pop("ok") is True
    assert Report.model_validate(data) == report()


def test_failed_requests_are_listed_with_escaped_cells() -> None:
    lost = [seen(started=float(n), seconds=2.0, error="503 a|b\nc") for n in range(12)]
    bad = report(during=RequestSummary.summarize([], lost), failures=list_failures(lost))
    assert not bad.ok
    assert len(bad.failures) == 10
    assert "| 1970-01-01T00:00:09+00:00 | chat | short | 503 a\\|b c | 2.0 s |" in format_markdown(bad)
    assert text(bad).startswith("small, changed to new.yaml: 12 of 112 requests failed")


def test_incomplete_change_is_not_ok_and_has_the_error() -> None:
    failed = report(error="RayService one: not ready after 900 s\npod one-2 Pending")
    assert not failed.ok
    assert "the change is incomplete" in text(failed).splitlines()[0]
    assert "  pod one-2 Pending" in text(failed)


def test_key_is_in_text_and_not_in_markdown() -> None:
    kept = report(kept=("curl -H 'Authorization: Bearer secret'",))
    assert "Bearer secret" in text(kept)
    assert "secret" not in format_markdown(kept)


def test_summary_of_no_requests_has_no_times() -> None:
    assert (NONE.p50_seconds, NONE.slowest_seconds) == (None, None)
    assert "before                    0       0       -       -        -" in text(report(before=NONE))
