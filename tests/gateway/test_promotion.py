"""`rayhelm promote` under load: a good version gets all requests step by step and loses none; bad ones go back to 0.

The gateway, Prometheus, the decisions and the fleet file are real. The engines are stand-ins with the metrics of vLLM.
Each decision has a Prometheus of its own, which scrapes from the moment at which the weight is in effect.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.kit.versions import CLIENTS, FLEET, Pipeline, start_versions
from gateway.kit.wait import wait_for
from rayhelm.live.promotion.report import PromotionDecision

STEPS = (5, 20, 50, 100)
PAGE = Path(__file__).parents[2] / "docs/tasks/promote-a-version.md"
GOLDEN = """\
{"prompt": "What is 2 + 2?", "answer": "4"}
{"prompt": "What is 8 / 2?", "answer": "4"}
{"prompt": "What is 2 + 3?", "answer": "5"}
"""


@pytest.fixture
def pipeline(tmp_path: Path):
    with start_versions(tmp_path) as pipeline, pipeline.clients.send():
        yield pipeline


def read_script() -> str:
    """Return the script of the page."""
    (script,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return str(script)


def assert_new_version_gets_no_requests(pipeline: Pipeline) -> None:
    """Of 300 requests it would have got 60. Each client may have sent one before the weight was in effect."""
    new, sent = pipeline.engines["chat-next"], pipeline.clients.statuses.total()
    before = new.received
    wait_for(lambda: pipeline.clients.statuses.total() >= sent + 300, "requests")
    assert new.received - before <= CLIENTS


@pytest.mark.slow
def test_good_version_gets_all_requests_and_none_is_lost(pipeline: Pipeline) -> None:
    process = pipeline.gateway.process.pid
    reports = [pipeline.run(STEPS, start=number == 0) for number in range(len(STEPS) + 1)]
    assert [each.next_weight for each in reports] == [*STEPS, STEPS[-1]]
    assert reports[-1].decision is PromotionDecision.finished
    assert set(pipeline.clients.statuses) == {200}
    assert pipeline.gateway.process.pid == process
    assert "for other pods" not in pipeline.gateway.output
    assert pipeline.file.read_text() == FLEET.replace("weight: 0", "weight: 100")


@pytest.mark.parametrize(
    ("planted", "reason"), [({"wait_s": 1.1}, "ttft: "), ({"fails": True}, "server errors: ")], ids=["slow", "failing"]
)
def test_bad_version_goes_back_to_0_under_load(planted, reason: str, pipeline: Pipeline) -> None:
    for name, value in planted.items():
        setattr(pipeline.engines["chat-next"], name, value)
    pipeline.write_weight(20)
    report = pipeline.run(STEPS)
    assert report.reason.startswith(reason)
    assert (report.decision, report.next_weight) == (PromotionDecision.roll_back, 0)
    assert pipeline.file.read_text() == FLEET
    assert_new_version_gets_no_requests(pipeline)


def test_version_with_worse_answers_goes_back_to_0_under_load(tmp_path: Path, pipeline: Pipeline) -> None:
    pipeline.engines["chat-next"].text = "5"
    pipeline.write_weight(20)
    (tmp_path / "golden.jsonl").write_text(GOLDEN)
    (tmp_path / "golden.py").write_text(read_script())
    environment = {**os.environ, "URL": f"http://127.0.0.1:{pipeline.gateway.port}", "KEY": "apps-key"}
    command = [sys.executable, "golden.py"]
    result = subprocess.check_output(command, cwd=tmp_path, env=environment, text=True)
    assert json.loads(result) == {"passed": 1, "failed": 2, "model": "chat-next"}
    (tmp_path / "quality.json").write_text(result)
    report = pipeline.run(STEPS, quality=tmp_path / "quality.json")
    assert report.next_weight == 0
    assert report.reason == "quality: 1 of 3 golden prompts passed, and 100% have to pass"
    assert_new_version_gets_no_requests(pipeline)
