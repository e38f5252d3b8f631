"""The report of a rehearsal: what it says, in each form."""

import io
import json
from typing import Any

from rich.console import Console

from rayhelm.rehearsal.load_client import RequestResult
from rayhelm.rehearsal.report import ChangeReport, PoolUsage, Report, RequestSummary, ServiceReport, list_failures
from rayhelm.rehearsal.report_page import format_markdown, print_report

NONE = RequestSummary.of([], [])


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
        "before": RequestSummary.of([seen(seconds=n / 100) for n in range(1, 101)], []),
        "during": RequestSummary.of([seen(seconds=0.5)], []),
        "failures": (),
        "warnings": (),
        "notes": ("chat: a tiny model stands in",),
    }
    return Report.model_validate({**usual, **change})


def text(of: Report) -> str:
    out = io.StringIO()
    print_report(of, Console(file=out, width=120, highlight=False))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_text_is_what_people_read() -> None:
    assert (
        text(report())
        == """\
small, changed to new.yaml: no request lost of 101
cluster main, rehearsed on https://10.0.0.1:6443 (context trial) with KubeRay 1.6.2
at most 2 Ray clusters, 5 pods that asked for 18.5 GiB

service  models  ready after
────────────────────────────
one      chat           53 s

changed          what happens  switched after  done after
─────────────────────────────────────────────────────────
ray-service one  new cluster             70 s       141 s

pool  cards of the real thing  before  at most  after  the pool has
───────────────────────────────────────────────────────────────────
gpu   L4-24GB                       1        2      1             2

requests           answered  lost     p50     p99  slowest
──────────────────────────────────────────────────────────
before                  100     0  0.51 s  1.00 s   1.00 s
during the change         1     0  0.50 s  0.50 s   0.50 s

what the change means
  ray-service one: its pods change

not as in the fleet
  chat: a tiny model stands in"""
    )


def test_markdown_is_what_a_pull_request_shows() -> None:
    assert (
        format_markdown(report(change="", changes=(), during=None))
        == """\
### small: no request lost of 100

cluster main, rehearsed on https://10.0.0.1:6443 (context trial) with KubeRay 1.6.2
at most 2 Ray clusters, 5 pods that asked for 18.5 GiB

| service | models | ready after |
| --- | --- | ---: |
| one | chat | 53 s |

| pool | cards of the real thing | before | at most | after | the pool has |
| --- | --- | ---: | ---: | ---: | ---: |
| gpu | L4-24GB | 1 | 2 | 1 | 2 |

| requests | answered | lost | p50 | p99 | slowest |
| --- | ---: | ---: | ---: | ---: | ---: |
| steady load | 100 | 0 | 0.51 s | 1.00 s | 1.00 s |

**Not as in the fleet**

* chat: a tiny model stands in
"""
    )


def test_json_has_a_verdict_and_comes_back_as_it_was() -> None:
    told = json.loads(report().model_dump_json())
    assert told.pop("ok") is True
    assert Report.model_validate(told) == report()


def test_each_lost_request_is_told_with_what_was_wrong_and_no_cell_breaks_the_table() -> None:
    lost = [seen(started=float(n), seconds=2.0, error="503 a|b\nc") for n in range(12)]
    bad = report(during=RequestSummary.of([], lost), failures=list_failures(lost))
    assert not bad.ok
    assert len(bad.failures) == 10
    assert "| 1970-01-01T00:00:09+00:00 | chat | short | 503 a\\|b c | 2.0 s |" in format_markdown(bad)
    assert text(bad).startswith("small, changed to new.yaml: 12 requests lost of 112")


def test_a_change_that_did_not_settle_is_no_success_and_says_why() -> None:
    failed = report(error="RayService one: not ready after 900 s\npod one-2 Pending")
    assert not failed.ok
    assert "the change did not come to its end" in text(failed).splitlines()[0]
    assert "  pod one-2 Pending" in text(failed)


def test_a_key_is_told_to_whoever_runs_it_and_to_no_pull_request() -> None:
    kept = report(kept=("curl -H 'Authorization: Bearer secret'",))
    assert "Bearer secret" in text(kept)
    assert "secret" not in format_markdown(kept)


def test_requests_that_nobody_made_have_no_times() -> None:
    assert (NONE.p50_seconds, NONE.slowest_seconds) == (None, None)
    assert "before                    0     0       -       -        -" in text(report(before=NONE))
