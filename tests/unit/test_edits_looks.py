"""The operator's log as evidence: a pass counts once, after the edit, and for its own RayService."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cluster.edits.looks import Looks


class Log:
    """The operator's, and its reader."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("what was there before\n")
        self.looks = Looks(path)

    def line(self, at: float, name: str = "rs", *, kind: str = "RayService", **more: Any) -> None:
        moment = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        about = {kind: {"name": name, "namespace": "ns"}, "reconcileID": "id"}
        self.write(json.dumps({"level": "info", "ts": moment, "msg": "looking", **about, **more}) + "\n")

    def write(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)

    def since(self, moment: float) -> int:
        return self.looks.since("ns", "rs", moment)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "operator.log")


def test_only_looks_after_the_moment_count(log: Log) -> None:
    for at in (10, 12, 14):
        log.line(at)
    assert [log.since(moment) for moment in (9, 11, 14)] == [3, 2, 0]


def test_lines_of_one_pass_and_hasty_passes_are_one_look(log: Log) -> None:
    for at in (10.0, 10.001, 10.2, 10.9, 11.1, 11.5):
        log.line(at)
    assert log.since(9) == 2


def test_looks_at_others_do_not_count(log: Log) -> None:
    log.line(10, "other")
    log.line(12, kind="RayCluster")
    log.write('{"level": "info", "ts": "?", "msg": "of nobody"}\nno JSON at all\n')
    assert log.since(9) == 0


def test_a_line_that_is_half_written_is_read_when_it_is_whole(log: Log) -> None:
    log.line(10)
    whole = log.path.read_text()
    log.path.write_text(whole[:-20])
    assert log.since(9) == 0
    log.write(whole[-20:])
    assert log.since(9) == 1


def test_errors_are_those_that_passes_ended_with_each_once(log: Log) -> None:
    log.line(10, level="error", msg="Reconciler error", error="before")
    log.line(12, level="error", msg="Reconciler error", error="found 0 head")
    log.line(14, level="error", msg="Reconciler error", error="found 0 head")
    log.line(16, level="error", msg="on the way", error="not the end of a pass")
    log.line(18, level="error", msg="Reconciler error", error="the object has been modified; please try again")
    assert log.looks.errors("ns", "rs", 11) == ["found 0 head"]


def test_a_ray_cluster_is_invalid_when_the_operator_says_so(log: Log) -> None:
    assert not log.looks.is_invalid("ns", "rs-abcde")
    log.line(10, "rs-abcde", kind="RayCluster", level="error", msg="The RayCluster UpgradeStrategy is invalid")
    log.line(10, "rs-fghij", kind="RayCluster", level="error", msg="Reconciler error", error="something else")
    assert log.looks.is_invalid("ns", "rs-abcde")
    assert not log.looks.is_invalid("ns", "rs-fghij")
