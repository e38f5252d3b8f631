"""Tokens by tenant since the last flush.

An engine counts in every step, and a metric of Ray costs microseconds. So the ledger adds in memory and passes sums to
its sinks once per second. A sink is a function: the metrics are one, and a limit of tokens per minute can be another.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["FLUSH_S", "HEADER", "MAX_TENANTS", "UNKNOWN", "Sink", "TokenLedger", "Tokens"]

HEADER = "x-rayhelm-tenant"
"""Header with the tenant. The gateway deletes it from each request of a client, and sets it to the owner of the key."""
UNKNOWN = "(unknown)"
"""Tenant of a request without a valid header. It cannot be the name of a tenant."""
MAX_TENANTS = 1000
"""Tenants that one replica distinguishes; further ones count as unknown. Each is a series of both counters."""
FLUSH_S = 1.0
"""Seconds from the first token to the sinks. Ray exports metrics every 10 s."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(slots=True)
class Tokens:
    """Tokens of a tenant."""

    prompt: int = 0
    """Prompt tokens, with those from the prefix cache."""
    generation: int = 0
    """Generated tokens."""


Sink = Callable[[Mapping[str, Tokens]], None]
"""Takes the tokens by tenant since the last call."""


class TokenLedger:
    """Adds tokens, and passes the sums to the sinks. All methods belong to one event loop, and none raises."""

    def __init__(self, *sinks: Sink) -> None:
        self.sinks = list(sinks)
        self._pending: dict[str, Tokens] = {}
        self._known: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._has_failed = False

    def name_tenant(self, headers: Mapping[str, str] | None) -> str:
        """Return the tenant of a request by its headers, or `UNKNOWN`."""
        name = (headers or {}).get(HEADER, "")
        if name in self._known:
            return name
        if len(self._known) >= MAX_TENANTS or not _NAME.fullmatch(name):
            return UNKNOWN
        self._known.add(name)
        return name

    def add(self, tenant: str, prompt: int, generation: int) -> None:
        """Count tokens. The first ones after a flush start the timer of the next."""
        tokens = self._pending.get(tenant)
        if tokens is None:
            tokens = self._pending[tenant] = Tokens()
        tokens.prompt += prompt
        tokens.generation += generation
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self.flush)

    def flush(self) -> None:
        """Pass the sums to each sink. A sink that fails loses them, and the others get them."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending, self._pending = self._pending, {}
        if not pending:
            return
        for sink in self.sinks:
            try:
                sink(pending)
            except Exception:
                self.report_failure()

    def report_failure(self) -> None:
        """Log the exception that is handled now, once per process: serving goes on without the count."""
        if self._has_failed:
            return
        self._has_failed = True
        logging.getLogger("ray.serve").exception(
            "tokens by tenant are not complete from now on; requests are served as before"
        )
