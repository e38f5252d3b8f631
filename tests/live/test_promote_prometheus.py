"""The counts of `rayhelm promote` over a real Prometheus, against counts by hand.

The samples are of two hours, one each minute, and the second hour is read. Each minute `chat` gets 100 responses, 1 of
them a server error, and `chat-next` 10. A pod of the gateway restarts at minute 90. The engine of `chat-next` has its
first late request at minute 70, and its first error at minute 80.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from live.prometheus_of_versions import FLEET
from rayhelm.errors import MissingError
from rayhelm.fleet.load import load_fleet
from rayhelm.live.cost.client import PrometheusClient, open_client
from rayhelm.live.cost.periods import Period
from rayhelm.live.promotion.measure import Measured, measure_versions
from rayhelm.live.promotion.subject import find_subject
from rayhelm.planner.planner import plan_fleet
from shared.prometheus import serve_samples

START = datetime(2025, 10, 10, tzinfo=UTC)
GATEWAY = {"namespace": "gateway", "rayhelm_dev_gateway": "gateway", "job": "gateway"}
OTHER_TEAM = {"namespace": "other", "rayhelm_dev_gateway": "gateway", "job": "gateway", "pod": "g", "instance": "o"}
LATE, FAILED, RESTART = 70, 80, 90


def samples() -> Iterator[str]:
    for version, rate in (("stable", 100), ("next", 10)):
        for pod in ("a", "b"):
            labels = {**GATEWAY, "proxy": f"chat:{version}", "pod": pod, "instance": pod}
            begin = RESTART if pod == "a" else 0
            yield from series(
                "haproxy_backend_http_responses_total",
                lambda minute, rate=rate, begin=begin: grown(minute, (rate - rate // 100) / 2, begin),
                {**labels, "code": "2xx"},
            )
            yield from series(
                "haproxy_backend_http_responses_total",
                lambda minute, rate=rate, begin=begin: grown(minute, rate // 100 / 2, begin),
                {**labels, "code": "5xx"},
            )
            yield from series("haproxy_backend_active_servers", lambda minute: 1, labels)
    yield from series(
        "haproxy_backend_http_responses_total",
        lambda minute: minute * 1000,
        {**OTHER_TEAM, "proxy": "chat:next", "code": "5xx"},
    )
    for service, rate in (("chat", 99), ("chat-next", 10)):
        engine = {"namespace": "models", "rayhelm_dev_service": service, "model_name": "chat"}
        engine |= {"job": service, "instance": service, "ReplicaId": service}
        yield from series("up", lambda minute: 1, {"job": service, "instance": service})
        yield from series(
            "ray_vllm_request_success_total",
            lambda minute, rate=rate: minute * rate,
            {**engine, "finished_reason": "stop"},
        )
        for bound in ("0.5", "1.0", "+Inf"):
            yield from series(
                "ray_vllm_time_to_first_token_seconds_bucket",
                lambda minute, rate=rate, bound=bound, service=service: (
                    minute * rate - (max(0, minute - LATE + 1) if service == "chat-next" and bound != "+Inf" else 0)
                ),
                {**engine, "le": bound},
            )
        if service == "chat-next":
            failed = {**engine, "finished_reason": "error"}
            yield from series("ray_vllm_request_success_total", lambda minute: 1 if minute >= FAILED else None, failed)


def grown(minute: int, rate: float, begin: int) -> float:
    """A counter that restarts once."""
    return (minute if minute < begin else minute - begin) * rate


def series(name: str, value: Callable[[int], float | None], labels: dict[str, str]) -> Iterator[str]:
    inside = ",".join(f'{label}="{text}"' for label, text in labels.items())
    for minute in range(121):
        if (number := value(minute)) is not None:
            yield f"{name}{{{inside}}} {number} {int(START.timestamp()) + 60 * minute}"


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusClient]:
    with serve_samples(tmp_path_factory.mktemp("prometheus"), samples()) as url, open_client(url, {}) as client:
        yield client


def measure(prometheus: PrometheusClient, folder: Path, start: datetime, minutes: int) -> Measured:
    (folder / "fleet.yaml").write_text(FLEET)
    subject = find_subject("chat-next", plan_fleet(load_fleet(folder / "fleet.yaml")))
    return measure_versions(prometheus, subject, Period(start, start + timedelta(minutes=minutes)))


def test_counts_of_an_hour_equal_those_by_hand(prometheus: PrometheusClient, tmp_path: Path) -> None:
    found = measure(prometheus, tmp_path, START + timedelta(hours=1), 60)
    new, present = found.new, found.present
    # A restart loses what was counted between the last sample and the end of the process: up to a minute of one pod.
    assert new.responses == pytest.approx(600, abs=6)
    assert present.responses == pytest.approx(6000, abs=60)
    assert (new.server_errors, present.server_errors) == (0, pytest.approx(60, abs=1))
    assert (new.finished, new.engine_errors) == (pytest.approx(601, abs=1), 1)
    assert (present.finished, present.engine_errors) == (pytest.approx(5940, abs=1), 0)
    late = new.first_tokens[float("inf")] - new.first_tokens[1.0]
    assert late == pytest.approx(51, abs=1)
    assert present.first_tokens[float("inf")] == present.first_tokens[1.0] == pytest.approx(5940, abs=1)
    assert found.all_responses == pytest.approx(6600, abs=66)
    assert (found.endpoints, found.missing, found.data_from) == (1, timedelta(), START + timedelta(hours=1))


def test_counts_of_a_quarter_of_an_hour_equal_those_by_hand(prometheus: PrometheusClient, tmp_path: Path) -> None:
    found = measure(prometheus, tmp_path, START + timedelta(minutes=105), 15)
    assert found.new.responses == pytest.approx(150, abs=1)
    assert (found.new.finished, found.new.engine_errors) == (pytest.approx(150, abs=1), 0)
    assert found.present.responses == pytest.approx(1500, abs=1)


def test_data_that_begin_within_the_period_are_no_gap(prometheus: PrometheusClient, tmp_path: Path) -> None:
    found = measure(prometheus, tmp_path, START - timedelta(hours=1), 120)
    assert (found.data_from, found.missing) == (START, timedelta())


def test_data_that_end_before_the_period_does_are_a_gap(prometheus: PrometheusClient, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"no data of the gateway for 56 of 180 minutes"):
        measure(prometheus, tmp_path, START, 180)
