"""ReconcileLog: a reconciliation counts once, after the edit, and for its own RayService."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cluster.edits.reconcile_log import ReconcileLog


class OperatorLog:
    """A log of the operator, and its reader."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("an earlier line\n")
        self.looks = ReconcileLog(path)

    def line(self, at: float, name: str = "rs", *, kind: str = "RayService", **more: Any) -> None:
        moment = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        about = {kind: {"name": name, "namespace": "ns"}, "reconcileID": f"from-{at}"}
        self.write(json.dumps({"level": "info", "ts": moment, "msg": "looking", **about, **more}) + "\n")

    def write(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)

    def count_since(self, moment: float) -> int:
        return self.looks.count_since("ns", "rs", moment)


@pytest.fixture
def log(tmp_path: Path) -> OperatorLog:
    return OperatorLog(tmp_path / "operator.log")


def test_count_since_counts_only_later_reconciliations(log: OperatorLog) -> None:
    for at in (10, 12, 14):
        log.line(at)
    assert [log.count_since(moment) for moment in (9, 11, 14)] == [3, 2, 0]


def test_count_since_counts_quick_reconciliations_once(log: OperatorLog) -> None:
    for at in (10.0, 10.001, 10.2, 10.9, 11.1, 11.5):
        log.line(at)
    assert log.count_since(9) == 2


def test_count_since_ignores_a_reconciliation_that_began_before(log: OperatorLog) -> None:
    for at in (8, 10, 12):
        log.line(at, reconcileID="slow")
    log.line(13)
    assert log.count_since(9) == 1


def test_count_since_counts_a_slow_reconciliation_once(log: OperatorLog) -> None:
    for at in (10, 12, 14):
        log.line(at, reconcileID="slow")
    assert log.count_since(9) == 1


def test_count_since_ignores_other_objects(log: OperatorLog) -> None:
    log.line(10, "other")
    log.line(12, kind="RayCluster")
    log.write('{"level": "info", "ts": "?", "msg": "without an object"}\nno JSON at all\n')
    assert log.count_since(9) == 0


def test_incomplete_line_is_read_when_it_is_complete(log: OperatorLog) -> None:
    log.line(10)
    whole = log.path.read_text()
    log.path.write_text(whole[:-20])
    assert log.count_since(9) == 0
    log.write(whole[-20:])
    assert log.count_since(9) == 1


def test_errors_has_each_reconcile_error_once(log: OperatorLog) -> None:
    log.line(10, level="error", msg="Reconciler error", error="before")
    log.line(12, level="error", msg="Reconciler error", error="found 0 head")
    log.line(14, level="error", msg="Reconciler error", error="found 0 head")
    log.line(16, level="error", msg="on the way", error="not the end of a pass")
    log.line(18, level="error", msg="Reconciler error", error="the object has been modified; please try again")
    log.line(18, level="error", msg="Reconciler error", error='rayclusters.ray.io "chat-x" already exists')
    assert log.looks.errors("ns", "rs", 11) == ["found 0 head"]


def test_ray_cluster_is_invalid_when_the_operator_logs_it(log: OperatorLog) -> None:
    assert not log.looks.is_invalid("ns", "rs-abcde")
    log.line(10, "rs-abcde", kind="RayCluster", level="error", msg="The RayCluster UpgradeStrategy is invalid")
    log.line(10, "rs-fghij", kind="RayCluster", level="error", msg="Reconciler error", error="something else")
    assert log.looks.is_invalid("ns", "rs-abcde")
    assert not log.looks.is_invalid("ns", "rs-fghij")
