"""Tokens by tenant since the last flush, and where they go.

A sink is a function, such as the metrics. The limit of tokens per minute is in the gateway, which counts by itself: it
sees all replicas of a tenant's models, and refuses a request before one of them has it.
"""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["HEADER", "MAX_TENANTS", "UNKNOWN", "Sink", "TokenLedger", "Tokens"]

HEADER = "x-rayhelm-tenant"
"""Header with the tenant. The gateway deletes it from each request of a client, and sets it to the owner of the key."""
UNKNOWN = "(unknown)"
"""Tenant of a request without a valid header. It cannot be the name of a tenant."""
MAX_TENANTS = 1000
"""Tenants that one replica distinguishes; further ones count as unknown. Each is a series of both counters."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(slots=True)
class Tokens:
    """Tokens of a tenant, or of a request."""

    prompt: int = 0
    """Prompt tokens, with those from the prefix cache."""
    generation: int = 0
    """Generated tokens."""


Sink = Callable[[Mapping[str, Tokens]], None]
"""Takes the tokens by tenant since the last call."""


class TokenLedger:
    """Adds tokens, and passes the sums to the sinks. No method raises."""

    def __init__(self, *sinks: Sink) -> None:
        self.sinks = list(sinks)
        self._pending: dict[str, Tokens] = {}
        self._known: set[str] = set()
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
        """Count tokens until the next flush."""
        tokens = self._pending.setdefault(tenant, Tokens())
        tokens.prompt += prompt
        tokens.generation += generation

    def flush(self) -> None:
        """Pass the sums to each sink. A sink that fails loses them, and the others get them."""
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
