"""Fourth round: what `rayhelm promote` reads changes the weight alone, or nothing, and never ends with a traceback."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attacks.kit.fourth_round import Attempt, read_attempts
from fleet.test_edit_text import BLOCK, PATH
from live.prometheus_of_versions import FLEET, PrometheusOfVersions
from live.test_promote import GOOD, PRESENT, Command
from rayhelm.errors import FleetError
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.edit_text import set_number


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(tmp_path, capsys, monkeypatch)


class HostilePrometheus(PrometheusOfVersions):
    """A Prometheus in which one answer, or one series, is another one."""

    def __init__(self, row: dict[str, Any]) -> None:
        super().__init__(GOOD, PRESENT, answer=row.get("answer"))
        self._row = row

    def _list_series(self, query: str) -> Iterator[tuple[dict[str, str], Any]]:
        part, changed, value = self._row.get("series", ("", {}, ""))
        for labels, number in super()._list_series(query):
            is_changed = bool(part) and part in query and "le" in labels
            yield ({**labels, **changed}, value) if is_changed else (labels, number)


@pytest.mark.parametrize("attempt", read_attempts("promotion", "replace"), ids=str)
def test_text_changes_at_the_weight_alone_or_not_at_all(attempt: Attempt) -> None:
    text = BLOCK
    for old, new in attempt.row["replace"]:
        assert old in text, old
        text = text.replace(old, new)
    if says := attempt.row.get("says"):
        with pytest.raises(FleetError, match=says):
            set_number(text, "fleet.yaml", PATH, 50)
        return
    before = parse_document(text, "fleet.yaml").data
    after = parse_document(set_number(text, "fleet.yaml", PATH, 50), "fleet.yaml").data
    before["models"]["chat-next"]["servedAs"]["weight"] = 50
    assert after == before


@pytest.mark.parametrize(
    "attempt", [*read_attempts("promotion", "answer"), *read_attempts("promotion", "series")], ids=str
)
def test_hostile_prometheus_ends_with_3_and_changes_no_weight(attempt: Attempt, command: Command) -> None:
    answer = command.run(HostilePrometheus(attempt.row), "--write")
    assert answer.code == 3, answer.out + answer.err
    assert "Traceback" not in answer.err
    assert command.file.read_text() == FLEET


@pytest.mark.parametrize("attempt", read_attempts("promotion", "quality"), ids=str)
def test_hostile_result_of_golden_prompts_changes_no_weight(attempt: Attempt, command: Command, tmp_path: Path) -> None:
    quality = tmp_path / "quality.json"
    quality.write_text(attempt.row["quality"])
    answer = command.run(PrometheusOfVersions(GOOD, PRESENT), "--write", "--quality", str(quality))
    assert (answer.code, attempt.row["says"] in answer.err) == (1, True), answer.err
    assert command.file.read_text() == FLEET


@pytest.mark.parametrize("attempt", read_attempts("promotion", "link"), ids=str)
def test_nothing_is_written_through_a_link(attempt: Attempt, command: Command, tmp_path: Path) -> None:
    outside, link = tmp_path / "outside", tmp_path / "link"
    outside.write_text("mine")
    link.symlink_to(outside)
    answer = command.run(PrometheusOfVersions(GOOD, PRESENT), "--write", attempt.row["link"], str(link))
    assert (answer.code, "is a link" in answer.err) == (1, True), answer.err
    assert outside.read_text() == "mine"
    assert command.file.read_text() == FLEET
