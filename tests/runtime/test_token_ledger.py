"""Tokens by tenant are added in memory and passed to the sinks; nothing that fails reaches the engine."""

from collections.abc import Mapping

import pytest

from rayhelm.runtime.token_usage import ledger as module
from rayhelm.runtime.token_usage.ledger import HEADER, UNKNOWN, TokenLedger, Tokens
from shared.log_records import capture_records

Counted = dict[str, tuple[int, int]]


class Sums:
    """A sink that remembers each call."""

    def __init__(self) -> None:
        self.calls: list[Counted] = []

    def __call__(self, counted: Mapping[str, Tokens]) -> None:
        self.calls.append({tenant: (tokens.prompt, tokens.generation) for tenant, tokens in counted.items()})


def test_ledger_passes_the_sums_of_each_tenant_once() -> None:
    sums = Sums()
    ledger = TokenLedger(sums)
    ledger.add("acme", 10, 1)
    ledger.add("acme", 0, 1)
    ledger.add("search", 7, 0)
    ledger.flush()
    ledger.flush()
    ledger.add("acme", 0, 3)
    ledger.flush()
    assert sums.calls == [{"acme": (10, 2), "search": (7, 0)}, {"acme": (0, 3)}]


def test_sink_that_fails_is_logged_once_and_the_others_get_the_tokens() -> None:
    def fail(counted: Mapping[str, Tokens]) -> None:
        raise OSError("no metrics")

    sums = Sums()
    ledger = TokenLedger(fail, sums)
    with capture_records("ray.serve") as records:
        for _ in range(2):
            ledger.add("acme", 10, 1)
            ledger.flush()
    assert sums.calls == [{"acme": (10, 1)}, {"acme": (10, 1)}]
    assert [text for record in records if "tokens by tenant" in (text := record.getMessage())] == [
        "tokens by tenant are not complete from now on; requests are served as before"
    ]


@pytest.mark.parametrize("name", ["acme", "a", "team-7", "x" * 63])
def test_tenant_is_the_one_of_the_header(name: str) -> None:
    assert TokenLedger().name_tenant({HEADER: name}) == name


@pytest.mark.parametrize(
    "headers",
    [None, {}, {"x-tenant": "acme"}, *({HEADER: name} for name in ["", "Acme", "a b", "-a", "x" * 64, "(x)"])],
)
def test_tenant_is_unknown_without_a_valid_header(headers: Mapping[str, str] | None) -> None:
    assert TokenLedger().name_tenant(headers) == UNKNOWN


def test_tenants_beyond_the_limit_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TENANTS", 2)
    ledger = TokenLedger()
    assert [ledger.name_tenant({HEADER: name}) for name in ("a", "b", "c", "a")] == ["a", "b", UNKNOWN, "a"]
