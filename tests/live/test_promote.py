"""`rayhelm promote`: its decisions, the fleet file after them, and its exit codes, with a fake Prometheus."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from live.prometheus_of_versions import FLEET, MORE, PrometheusOfVersions, Requests
from shared.command import Answer, run
from shared.ports import reserve_port

GOOD = Requests(500)
PRESENT = Requests(9500, server_errors=2)


class Command:
    """The command with a fleet file of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = folder / "fleet.yaml"
        self.file.write_text(FLEET)
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def run(self, prometheus: PrometheusOfVersions, *arguments: str, model: str = "chat-next") -> Answer:
        with prometheus.serve() as url:
            return self.run_at(url, *arguments, model=model)

    def run_at(self, url: str, *arguments: str, model: str = "chat-next") -> Answer:
        options = ("--prometheus", url, *arguments)
        return run(self._capsys, self._monkeypatch, "promote", str(self.file), model, *options)

    def decide(self, prometheus: PrometheusOfVersions, *arguments: str) -> dict[str, Any]:
        answer = self.run(prometheus, *arguments, "--format", "json")
        assert answer.code == 0, answer.err or answer.out
        found = json.loads(answer.out)
        assert isinstance(found, dict)
        return found

    def write_weight(self, weight: int) -> None:
        self.file.write_text(FLEET.replace("weight: 5", f"weight: {weight}"))

    @property
    def weight(self) -> int:
        (found,) = re.findall(r"weight: (\d+)", self.file.read_text())
        return int(found)


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(tmp_path, capsys, monkeypatch)


def versions(new: Requests = GOOD, present: Requests = PRESENT, **more: Any) -> PrometheusOfVersions:
    return PrometheusOfVersions(new, present, **more)


# -- decisions -------------------------------------------------------------------------------------------------------


def test_weight_rises_to_the_next_step_when_all_objectives_are_met(command: Command) -> None:
    answer = command.run(versions(), "--write")
    assert answer.code == 0, answer.err
    assert command.file.read_text() == FLEET.replace("weight: 5}", "weight: 20}")
    assert "chat-next (chat:next): promote, weight 5 -> 20 %: all objectives are met" in answer.out
    assert "+    servedAs: {model: chat, version: next, weight: 20}   # raised by" in answer.out


def test_file_stays_without_write_and_the_diff_is_shown(command: Command) -> None:
    found = command.decide(versions())
    assert command.file.read_text() == FLEET
    assert (found["decision"], found["next_weight"], found["is_written"]) == ("promote", 20, False)
    assert found["diff"].count("\n+") == 2
    verdicts = {each["name"]: each["verdict"] for each in found["criteria"]}
    assert verdicts == dict.fromkeys(("server errors", "engine errors", "ttft"), "met")


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (Requests(100, server_errors=5), "server errors: 5 of 100 fail (5.00%, allowed 0.10%); present version 2 of"),
        (Requests(100, engine_errors=5), "engine errors: 5 of 100 fail (5.00%, allowed 0.10%); present version 0 of"),
        (Requests(300, late=40), "ttft: 40 of 300 are late (13.33%, allowed 5.00%); present version 0 of"),
    ],
)  # fmt: skip
def test_missed_objective_rolls_back_with_few_requests(new: Requests, reason: str, command: Command) -> None:
    found = command.decide(versions(new), "--write", "--ignore-share")
    assert (found["decision"], found["next_weight"]) == ("roll back", 0)
    assert reason in found["reason"]
    assert command.file.read_text() == FLEET.replace("weight: 5}", "weight: 0}")


def test_two_failures_do_not_roll_back(command: Command) -> None:
    found = command.decide(versions(Requests(20, server_errors=2)), "--ignore-share")
    assert found["decision"] == "keep"


def test_much_worse_version_rolls_back_within_a_wide_objective(command: Command) -> None:
    command.file.write_text(FLEET.replace("slo: {ttft: 1s}", "slo: {availability: 0.9}"))
    assert command.decide(versions(Requests(500, server_errors=45), Requests(9500)))["decision"] == "promote"
    found = command.decide(versions(Requests(500, server_errors=52), Requests(9500)))
    assert (found["decision"], found["criteria"][0]["verdict"]) == ("roll back", "worse")


def test_present_version_is_the_measure_without_an_objective(command: Command) -> None:
    command.file.write_text(FLEET.replace("slo: {ttft: 1s}", "slo: {availability: 0}"))
    assert command.decide(versions(Requests(500, server_errors=5), Requests(9500)))["decision"] == "promote"
    found = command.decide(versions(Requests(500, server_errors=15), Requests(9500)))
    assert (found["decision"], found["criteria"][0]["allowed_share"]) == ("roll back", None)


def test_objective_that_both_versions_miss_keeps_the_weight(command: Command) -> None:
    found = command.decide(versions(Requests(500, server_errors=20), Requests(9500, server_errors=400)))
    assert found["decision"] == "keep"
    assert "both versions miss the objective for server errors" in found["reason"]


def test_present_version_without_requests_does_not_excuse_a_missed_objective(command: Command) -> None:
    command.write_weight(100)
    found = command.decide(versions(Requests(500, server_errors=20), Requests(0)))
    assert found["decision"] == "roll back"


def test_too_few_requests_keep_the_weight_and_say_how_many_are_missing(command: Command) -> None:
    found = command.decide(versions(Requests(92), Requests(1748)), "--write", "--last", "2h")
    assert (found["decision"], found["next_weight"]) == ("keep", 5)
    ttft = next(each for each in found["criteria"] if each["name"] == "ttft")
    assert found["more_requests"] == ttft["needed_requests"] - 92
    assert found["reason"].startswith(f"{found['more_requests']} more requests needed for ttft (92 of ")
    assert "about 6.0 h at this rate" in found["reason"]
    assert command.file.read_text() == FLEET


def test_version_without_any_request_keeps_the_weight(command: Command) -> None:
    found = command.decide(versions(Requests(0), Requests(0)))
    assert found["decision"] == "keep"
    assert re.search(r"^\d+ more requests needed: ttft has none in 60 minutes$", found["reason"])


def test_weight_that_is_not_delivered_is_not_raised_again(command: Command) -> None:
    command.write_weight(50)
    found = command.decide(versions(GOOD, PRESENT))
    assert found["decision"] == "keep"
    assert "the gateway sent it 5.0% of the requests and its weight is 50 %" in found["reason"]
    assert command.decide(versions(GOOD, PRESENT), "--ignore-share")["next_weight"] == 100


def test_share_of_requests_is_not_compared_when_tenants_pin_versions(command: Command) -> None:
    text = FLEET.replace("weight: 5", "weight: 50").replace("[chat]}", "[chat], pinnedVersions: {chat: stable}}")
    command.file.write_text(text)
    assert command.decide(versions())["next_weight"] == 100


def test_last_step_is_finished(command: Command) -> None:
    command.write_weight(100)
    found = command.decide(versions(Requests(9000), Requests(0)), "--write")
    assert (found["decision"], found["next_weight"], found["diff"]) == ("finished", 100, "")
    assert command.weight == 100


def test_weight_of_0_stays_without_start(command: Command) -> None:
    command.write_weight(0)
    found = command.decide(versions(Requests(0)), "--write")
    assert (found["decision"], found["reason"]) == ("keep", "the weight is 0, and --start begins with the first step")
    assert command.decide(versions(Requests(0)), "--write", "--start")["next_weight"] == 1
    assert command.weight == 1


def test_start_writes_a_weight_that_the_file_does_not_have(command: Command) -> None:
    command.file.write_text(FLEET.replace(", weight: 5", ""))
    assert command.decide(versions(Requests(0)), "--write", "--start")["next_weight"] == 1
    assert command.file.read_text() == FLEET.replace("weight: 5", "weight: 1")


@pytest.mark.parametrize(
    ("endpoints", "reason"),
    [(0, "no endpoint of version `next` is available"), (None, "the gateway has no version `next` yet")],
)
def test_version_without_endpoints_is_not_started(endpoints: int | None, reason: str, command: Command) -> None:
    command.write_weight(0)
    found = command.decide(versions(Requests(0), endpoints=endpoints), "--start")
    assert found["decision"] == "keep"
    assert found["reason"].startswith(reason)


def test_steps_are_those_of_the_option(command: Command) -> None:
    assert command.decide(versions(), "--steps", "10, 30,100")["next_weight"] == 10


@pytest.mark.parametrize(("rate", "is_warned"), [(0.5, True), (0.6, False)])
def test_step_above_the_planned_load_is_a_warning(rate: float, is_warned: bool, command: Command) -> None:
    """10,000 requests in an hour: 20 % are 0.56 requests/s."""
    traffic = f"traffic: {{requestsPerSecond: {rate}, inputTokens: 100, outputTokens: 10}}"
    command.file.write_text(FLEET.replace("    servedAs", f"    {traffic}\n    servedAs"))
    found = command.decide(versions())
    assert found["next_weight"] == 20
    assert bool(found["warnings"]) is is_warned
    assert ("**Warning**: at 20 % `chat-next` gets about 0.56 requests/s" in found["commit"]["body"]) is is_warned


def test_next_step_has_to_fit_beside_other_versions(command: Command) -> None:
    third = FLEET.replace(
        "tenants:",
        "  chat-third:\n    source: Qwen/Qwen3-4B\n    unpinnedReason: weights of a test\n    context: 4096\n"
        "    servedAs: {model: chat, version: third, weight: 90}\ntenants:",
    )
    command.file.write_text(third)
    found = command.decide(versions())
    assert found["decision"] == "keep"
    assert "the next step is 20 %, and the other versions of `chat` leave 10 %" in found["reason"]


# -- golden prompts --------------------------------------------------------------------------------------------------


def test_failed_golden_prompts_roll_back(command: Command, tmp_path: Path) -> None:
    quality = tmp_path / "quality.json"
    quality.write_text('{"passed": 48, "failed": 2}')
    found = command.decide(versions(), "--quality", str(quality), "--write")
    assert (found["decision"], command.weight) == ("roll back", 0)
    assert found["reason"] == "quality: 48 of 50 golden prompts passed, and 100% have to pass"
    command.write_weight(5)
    options = ("--quality", str(quality), "--quality-share", "0.96")
    assert command.decide(versions(), *options)["decision"] == "promote"


@pytest.mark.parametrize(
    "text",
    [
        'kind: ConfigMap\ndata:\n  result.json: |\n    {"passed": 50, "failed": 0, "model": "chat-next"}\n',
        'kind: ConfigMap\ndata: {passed: "50", failed: "0"}\n',
        '{"kind": "ConfigMap", "data": {"result.json": "{\\"passed\\": 50, \\"failed\\": 0}"}}',
    ],
)
def test_config_map_of_golden_prompts_is_read(text: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "q").write_text(text)
    assert command.decide(versions(), "--quality", str(tmp_path / "q"))["quality"]["passed"] == 50


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is not a file"),
        ('{"passed": 48}', "`failed`: field required"),
        ('{"passed": -1, "failed": 0}', "`passed`: input should be greater than or equal to 0"),
        ('{"passed": 0, "failed": 0}', "no golden prompt was sent"),
        ('{"passed": 1, "failed": 0, "model": "chat-old"}', "is the result of model `chat-old`"),
        ('{"passed": 1, "failed": 0, "revision": "abc"}', "is the result of revision `abc`"),
        ("{", "is not JSON"),
        ("kind: ConfigMap\ndata: {a: '{'}", "is not JSON"),
        ("kind: ConfigMap\ndata: 5", "is not a JSON object"),
        ('{"passed": 2020-13-45, "failed": 0}', "is not JSON"),
        (f'{{"passed": {"9" * 5000}, "failed": 0}}', "is not JSON"),
        ('kind: ConfigMap\ndata: {a: \'{"passed": ' + "[" * 50_000 + "'}", "is not JSON"),
    ],
)
def test_wrong_result_of_golden_prompts_ends_with_1(
    text: str | None, message: str, command: Command, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "q.json").write_text(text)
    answer = command.run(versions(), "--quality", str(tmp_path / "q.json"), "--write")
    assert (answer.code, command.weight) == (1, 5)
    assert f"{tmp_path / 'q.json'}: {message}" in answer.err


# -- messages --------------------------------------------------------------------------------------------------------


def test_commit_message_has_the_reason_the_figures_and_the_tests(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "message"
    found = command.decide(versions(), "--commit-message", str(file))
    subject, empty, *body = file.read_text().splitlines()
    assert (subject, empty) == ("Promote version next of chat to 20 %", "")
    assert body[0] == "`models.chat-next.servedAs.weight`: 5 -> 20, because all objectives are met."
    assert "| ttft > 1 s | 5.00% | 0 of 500 | 0 of 9498 | 368 | met |" in body
    assert "Fisher's exact test" in body[-1]
    assert found["commit"]["subject"] == subject


def test_commit_message_is_empty_when_the_weight_stays(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "message"
    file.write_text("of the run before")
    command.decide(versions(Requests(10), Requests(190)), "--commit-message", str(file))
    assert file.read_text() == ""


# -- what is wrong with the fleet file or with Prometheus ------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "edit", "message"),
    [
        ("chat", ("", ""), "models.chat: `chat` has no `servedAs`: it serves no other version of a model"),
        ("chat-more", ("tenants:", f"{MORE}tenants:"), "`chat-more` has the same weights as `chat`, and no version"),
        ("chat-next", ("weight: 5}", "weight: *p}"), "models.chat-next.servedAs: an anchor (`&`) or alias (`*`)"),
        ("chat-next", ("tenants:\n  apps: {models: [chat]}\n", ""), "no tenant may call `chat`"),
    ],
)  # fmt: skip
def test_fleet_that_cannot_be_promoted_ends_with_1(
    model: str, edit: tuple[str, str], message: str, command: Command
) -> None:
    command.file.write_text(FLEET.replace("nodes: 4", "nodes: &p 4").replace(*edit))
    before = command.file.read_text()
    prometheus = versions()
    answer = command.run(prometheus, "--write", model=model)
    assert (answer.code, command.file.read_text()) == (1, before), answer
    assert message in answer.err
    assert not prometheus.asked


def test_unknown_model_ends_with_2(command: Command) -> None:
    answer = command.run(versions(), model="chat-nxt")
    assert answer.code == 2
    assert "the fleet has no model `chat-nxt`; did you mean `chat-next` or `chat`?" in answer.err


def test_written_file_keeps_its_mode_and_the_link_to_it(command: Command, tmp_path: Path) -> None:
    target = tmp_path / "real.yaml"
    command.file.rename(target)
    target.chmod(0o640)
    command.file.symlink_to(target.name)
    command.decide(versions(), "--write")
    assert command.file.is_symlink()
    assert (command.weight, target.stat().st_mode & 0o777) == (20, 0o640)
    assert {path.name for path in tmp_path.iterdir()} == {"fleet.yaml", "real.yaml"}


def test_fleet_that_changed_meanwhile_is_not_written(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prometheus = versions()
    find = prometheus._find

    def change(form: dict[str, str]) -> Any:
        command.file.write_text(FLEET.replace("weight: 5", "weight: 0"))
        return find(form)

    monkeypatch.setattr(prometheus, "_find", change)
    answer = command.run(prometheus, "--write", "--commit-message", str(tmp_path / "message"))
    assert (answer.code, command.weight) == (1, 0)
    assert "fleet.yaml: changed while the command ran, and was not written" in answer.err
    assert not (tmp_path / "message").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.yaml"]


def test_prometheus_that_does_not_answer_ends_with_3(command: Command) -> None:
    with reserve_port() as port:
        answer = command.run_at(f"http://127.0.0.1:{port}", "--write")
    assert (answer.code, command.file.read_text()) == (3, FLEET)
    assert "does not answer" in answer.err


@pytest.mark.parametrize(
    ("missing", "fix"),
    [
        (range(20, 40), "give a period after it: --last 1h"),
        (range(60, 80), "give a period after it: --last 41m"),
        (range(117, 121), "let Prometheus scrape again"),
    ],
)
def test_gap_of_the_data_ends_with_3(missing: range, fix: str, command: Command) -> None:
    answer = command.run(versions(missing=missing), "--write", "--last", "2h")
    assert (answer.code, command.file.read_text()) == (3, FLEET)
    assert f"no data of the gateway for {len(missing)} of 120 minutes" in answer.err
    assert fix in answer.err


def test_short_gap_is_a_warning_and_a_late_begin_is_none(command: Command) -> None:
    answer = command.run(versions(missing=range(20, 25)))
    assert (answer.code, "no data for 5 minutes" in answer.err) == (0, True)
    assert not command.run(versions(missing=range(0, 30))).err


def test_gateway_that_is_not_scraped_ends_with_3(command: Command) -> None:
    answer = command.run(versions(has_gateway=False))
    assert answer.code == 3
    assert "has no series `haproxy_backend_active_servers` of `chat` in the gateway" in answer.err


def test_engines_that_are_not_scraped_end_with_3(command: Command) -> None:
    answer = command.run(versions(Requests(500, is_scraped=False)))
    assert answer.code == 3
    assert "has no series of its engines for engine errors, ttft (service chat-next)" in " ".join(answer.err.split())


@pytest.mark.parametrize(
    ("option", "values", "message"),
    [
        ("--last", ["9m", "0h", "1", "401d", "15s"], "is not a period from 10 minutes to 400 days"),
        ("--steps", ["", "5,1", "0,100", "1,101", "1,,2", "5,5", "a"], "are no rising weights from 1 to 100"),
        ("--commit-message", ["FLEET"], "`--commit-message` is the fleet file"),
    ],
)
def test_wrong_option_ends_with_2(option: str, values: list[str], message: str, command: Command) -> None:
    for value in values:
        answer = command.run(versions(), "--write", option, value.replace("FLEET", str(command.file)))
        assert (answer.code, command.file.read_text()) == (2, FLEET)
        assert message in answer.err
