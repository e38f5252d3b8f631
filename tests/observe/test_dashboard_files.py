"""A file of a dashboard that is wrong is refused, with the file, the panel and the cause."""

import importlib
import sys
from pathlib import Path

import pytest

from rayhelm.errors import FleetError
from rayhelm.observe import dashboards
from rayhelm.observe.generate import generate

PANEL = """TimeSeries(
    title="Waiting",
    description="Requests that wait in the engines.",
    thresholds=rising(5, 20),
    lines=(line(queues.waiting, "{{model_name}}"),),
)"""
FILE = """from rayhelm.observe.dashboard_model import *
from rayhelm.observe.queries import latency, queues

DASHBOARD = Dashboard(
    name="%s",
    title="rayhelm: Sample",
    description="A dashboard of the tests.",
    rows=(Row(title="Row", panels=(%s,)),),
)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of that of the dashboards."""
    monkeypatch.setattr(dashboards, "__path__", [str(tmp_path)])
    for name in [each for each in sys.modules if each.startswith(f"{dashboards.__name__}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    importlib.invalidate_caches()
    return tmp_path


def refusal(folder: Path, panel: str = PANEL, name: str = "sample") -> str:
    (folder / "sample.py").write_text(FILE % (name, panel))
    importlib.invalidate_caches()
    try:
        with pytest.raises(FleetError) as caught:
            generate()
    finally:
        sys.modules.pop(f"{dashboards.__name__}.sample", None)
    text = str(caught.value)
    assert "rayhelm/observe/dashboards/sample.py" in text
    return text


def test_new_dashboard_is_one_file(folder: Path) -> None:
    (folder / "sample.py").write_text(FILE % ("sample", PANEL))
    importlib.invalidate_caches()
    try:
        assert list(generate()) == ["sample.json"]
    finally:
        sys.modules.pop(f"{dashboards.__name__}.sample", None)


def test_file_without_a_dashboard_is_refused(folder: Path) -> None:
    (folder / "sample.py").write_text("")
    importlib.invalidate_caches()
    try:
        with pytest.raises(FleetError, match="the module has no DASHBOARD") as caught:
            generate()
    finally:
        sys.modules.pop(f"{dashboards.__name__}.sample", None)
    assert 'DASHBOARD = Dashboard(name="sample"' in str(caught.value)


def test_dashboard_with_another_name_than_its_file_is_refused(folder: Path) -> None:
    assert 'the name is "other", and the file requires "sample"' in refusal(folder, name="other")


def test_unknown_metric_is_refused_with_the_panel(folder: Path) -> None:
    panel = PANEL.replace(
        'line(queues.waiting, "{{model_name}}")', 'Line(expr="sum(ray_serve_requests_queued)", unit="requests")'
    )
    text = refusal(folder, panel)
    assert "Waiting" in text
    assert "ray_serve_requests_queued" in text
    assert "fix:" in text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('description="Requests that wait in the engines.",', "", "Field required"),
        ('"Requests that wait in the engines."', '"Waiting"', "at least 20 characters"),
        ("thresholds=rising(5, 20),", "thresholds=(),", "at least 2 items"),
        ("rising(5, 20)", "rising(20, 5)", "panel Waiting: thresholds must rise (found [20.0, 5.0])"),
        (
            'lines=(line(queues.waiting, "{{model_name}}"),)',
            "lines=(line(queues.waiting), line(latency.time_to_first_token))",
            "panel Waiting: its queries have several units (requests, seconds)",
        ),
        ('lines=(line(queues.waiting, "{{model_name}}"),),', "lines=(),", "at least 1 item"),
    ],
)  # fmt: skip
def test_panel_that_lacks_something_is_refused(folder: Path, old: str, new: str, said: str) -> None:
    assert old in PANEL
    assert said in refusal(folder, PANEL.replace(old, new))
