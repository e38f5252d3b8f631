"""Tenant and request id in the logs of Serve's processes, with Ray Serve's own filter and formatter."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rayhelm.runtime import engine_log, request_log
from rayhelm.runtime.request_log import MAX_REQUESTS, TenantMiddleware, remember_tenant, tenant_of

pytestmark = pytest.mark.serve


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    request_log._tenants.clear()
    yield
    request_log._tenants.clear()


@pytest.fixture
def serve_log() -> Iterator[io.StringIO]:
    """What Serve's logger writes, as in a replica whose Serve logs requests."""
    from ray._common.formatters import JSONFormatter
    from ray.serve._private.logging_utils import ServeContextFilter

    request_log.add_tenants()
    out, logger = io.StringIO(), logging.getLogger("ray.serve")
    handler = logging.StreamHandler(out)
    handler.setFormatter(JSONFormatter())
    handler.addFilter(ServeContextFilter())
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield out
    logger.removeHandler(handler)
    logger.setLevel(level)
    logger.propagate = propagate


def enter_request(request_id: str) -> None:
    from ray.serve import context

    context._serve_request_context.set(context._RequestContext(request_id=request_id, route="/v1"))


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def send(headers: list[tuple[bytes, bytes]], kind: str = "http") -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        enter_request("r-1")
        logging.getLogger("ray.serve").info("in the request")

    async def nothing(*_: Any) -> Any:
        raise AssertionError("neither is called")

    asyncio.run(TenantMiddleware(app)({"type": kind, "headers": headers}, nothing, nothing))


def test_line_of_a_request_has_its_tenant(serve_log: io.StringIO) -> None:
    send([(b"x-request-id", b"r-1"), (b"x-rayhelm-tenant", b"apps")])
    (found,) = lines(serve_log)
    assert (found["request_id"], found["tenant"]) == ("r-1", "apps")


@pytest.mark.parametrize("tenant", [b"", b"Apps", b"a b", b'a"', b"x" * 64, b"\xff", b"a\n"])
def test_header_that_is_no_tenant_is_ignored(serve_log: io.StringIO, tenant: bytes) -> None:
    send([(b"x-request-id", b"r-1"), (b"x-rayhelm-tenant", tenant)])
    (found,) = lines(serve_log)
    assert "tenant" not in found


@pytest.mark.parametrize("later", [["other"], ["other", "apps"], ["other", "other"]])
def test_lines_have_no_tenant_when_several_use_one_id(serve_log: io.StringIO, later: list[str]) -> None:
    for tenant in ("apps", *later):
        remember_tenant("r-1", tenant)
    enter_request("r-1")
    logging.getLogger("ray.serve").info("of one of them")
    (found,) = lines(serve_log)
    assert "tenant" not in found


def test_request_without_an_id_has_no_tenant(serve_log: io.StringIO) -> None:
    send([(b"x-rayhelm-tenant", b"apps")])
    (found,) = lines(serve_log)
    assert "tenant" not in found


def test_tenant_of_the_code_that_logs_is_kept(serve_log: io.StringIO) -> None:
    remember_tenant("r-1", "apps")
    enter_request("r-1")
    logging.getLogger("ray.serve").info("own", extra={"tenant": "mine"})
    (found,) = lines(serve_log)
    assert found["tenant"] == "mine"


def test_oldest_requests_are_forgotten() -> None:
    for number in range(MAX_REQUESTS + 1):
        remember_tenant(f"r-{number}", "apps")
    assert tenant_of("r-0") == ""
    assert tenant_of("r-1") == tenant_of(f"r-{MAX_REQUESTS}") == "apps"


class Processor:
    """The parts of vLLM's output processor that the log uses."""

    def __init__(self) -> None:
        self.request_states: dict[str, Any] = {}

    def add_request(self, request: Any) -> None:
        stats = SimpleNamespace(
            num_generation_tokens=5, arrival_time=0.0, queued_ts=1.0, scheduled_ts=1.5, first_token_latency=0.25
        )
        self.request_states[request.request_id] = SimpleNamespace(prompt_len=7, num_cached_tokens=4, stats=stats)

    def abort_requests(self, request_ids: list[str], internal: bool) -> list[str]:
        return [name for name in request_ids if self.request_states.pop(name, None)]

    def _update_stats_from_finished(self, state: Any, finish_reason: Any, stats: Any) -> None:
        pass


@pytest.fixture
def processor(serve_log: io.StringIO) -> Processor:
    found = Processor()
    engine_log.log_requests(found, "chat")
    return found


def add(processor: Processor, request_id: str, name: str) -> Any:
    enter_request(request_id)
    engine_log.remember_request("apps")
    processor.add_request(SimpleNamespace(request_id=name))
    return processor.request_states[name]


def test_end_of_a_request_is_logged_with_tokens_and_times(processor: Processor, serve_log: io.StringIO) -> None:
    state = add(processor, "r-1", "chatcmpl-r-1-0")
    processor._update_stats_from_finished(state, "stop", None)
    (found,) = lines(serve_log)
    assert found.items() >= {
        "message": "engine request ended",
        "request_id": "r-1",
        "tenant": "apps",
        "model": "chat",
        "finish_reason": "stop",
        "prompt_tokens": 7,
        "cached_tokens": 4,
        "generation_tokens": 5,
        "queue_ms": 500.0,
        "first_token_ms": 250.0,
    }.items()  # fmt: skip


def test_line_of_the_engine_has_no_request_of_its_task(processor: Processor, serve_log: io.StringIO) -> None:
    """vLLM's output task has the context of the request that started it."""
    first = add(processor, "r-1", "one")
    add(processor, "r-2", "two")
    processor._update_stats_from_finished(first, "stop", None)
    assert [line["request_id"] for line in lines(serve_log)] == ["r-1"]


def test_aborted_request_is_logged_once(processor: Processor, serve_log: io.StringIO) -> None:
    state = add(processor, "r-1", "one")
    assert processor.abort_requests(["one", "unknown"], internal=True) == ["one"]
    processor._update_stats_from_finished(state, "stop", None)
    (found,) = lines(serve_log)
    assert found["finish_reason"] == "abort"


def test_failure_of_the_log_does_not_reach_the_engine(processor: Processor, serve_log: io.StringIO) -> None:
    state = add(processor, "r-1", "one")
    del state.stats.arrival_time
    processor._update_stats_from_finished(state, "stop", None)
    (found,) = lines(serve_log)
    assert found["message"] == "a line of the engine's log failed"


def test_line_of_the_engine_follows_the_switch_of_serve() -> None:
    """Serve's filter drops records with this mark while `enable_access_log` is off."""
    from ray.serve._private.logging_utils import log_access_log_filter

    state = SimpleNamespace(
        prompt_len=1, num_cached_tokens=0,
        stats=SimpleNamespace(num_generation_tokens=0, arrival_time=0.0, scheduled_ts=0.0),
    )  # fmt: skip
    record = logging.makeLogRecord(engine_log._read_fields(state, "stop"))
    assert not log_access_log_filter(record)
