"""Tenants in the log lines of Ray Serve.

Serve's own lines have the id of the request, which the gateway sets, and not its tenant. The gateway sends the tenant
as a header. A proxy sees the header, and the engine of a replica gets it from the ingress; both call `remember_tenant`.
From then on, each line that this process logs for the request has `tenant`. Clients choose ids, so tenants can use the
same one: its lines have no tenant, because it could be the wrong one.
"""

import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from rayhelm.runtime.token_usage.ledger import HEADER

__all__ = ["MAX_REQUESTS", "TenantMiddleware", "add_tenants", "remember_tenant", "tenant_of"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

MAX_REQUESTS = 8192
"""Requests whose tenant a process remembers. Serve logs a request a moment after the code that knows the tenant."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_REQUEST_ID = b"x-request-id"

_SEVERAL = ""
"""In place of a tenant, for an id that several tenants use."""
_tenants: OrderedDict[str, str] = OrderedDict()


class TenantMiddleware:
    """ASGI middleware of Serve's proxies. Passes messages on unchanged."""

    def __init__(self, app: App) -> None:
        self._app = app
        add_tenants()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = dict(scope.get("headers", ()))
            remember_tenant(
                headers.get(_REQUEST_ID, b"").decode("latin-1"), headers.get(HEADER.encode(), b"").decode("latin-1")
            )
        await self._app(scope, receive, send)


def remember_tenant(request_id: str, tenant: str) -> None:
    """Add the tenant to the log lines of a request in this process. A tenant that cannot be one is ignored."""
    if not request_id or not _NAME.fullmatch(tenant):
        return
    _tenants[request_id] = tenant if _tenants.get(request_id, tenant) == tenant else _SEVERAL
    _tenants.move_to_end(request_id)
    while len(_tenants) > MAX_REQUESTS:
        _tenants.popitem(last=False)


def tenant_of(request_id: str) -> str:
    """Return the tenant of a request, or an empty text."""
    return _tenants.get(request_id, "")


def add_tenants() -> None:
    """Give the log records of this process the attribute `tenant`, where Serve gives them `request_id`.

    It is a part of Serve's own filter: a record factory would make `extra={"tenant": ...}` of other code fail.
    """
    from ray.serve._private.logging_utils import ServeContextFilter

    before = ServeContextFilter.filter
    if getattr(before, "adds_tenants", False):
        return

    def add_context(self: logging.Filter, record: logging.LogRecord) -> bool:
        is_kept: bool = before(self, record)
        tenant = tenant_of(getattr(record, "request_id", ""))
        if tenant and not hasattr(record, "tenant"):
            record.tenant = tenant
        return is_kept

    add_context.adds_tenants = True  # type: ignore[attr-defined]
    ServeContextFilter.filter = add_context
