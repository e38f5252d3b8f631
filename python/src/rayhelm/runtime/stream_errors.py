"""Report interrupted streams to clients. Serve's proxies call `middlewares` if
`RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH` names it; it also returns the middleware of the log.

A stream of OpenAI's API ends with `data: [DONE]`. If the replica behind Ray Serve LLM's ingress fails, the ingress ends
the body without an error, because Starlette's BaseHTTPMiddleware drops the exception. A client cannot distinguish such
an answer from a short one. The proxy sees every byte, so it adds the error that vLLM sends and OpenAI's clients raise.
"""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from rayhelm.runtime.request_log import TenantMiddleware

__all__ = ["StreamErrorMiddleware", "middlewares"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

PATHS = ("/chat/completions", "/completions")
"""Paths whose streams end with that line; other server-sent events may end differently."""
END = b"data: [DONE]"
_TAIL = 64
"""Bytes that are kept: the end and the empty lines after it may be split into several messages."""


class StreamErrorMiddleware:
    """ASGI middleware. Passes messages on unchanged; an error may be added to the last one."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].rstrip("/").endswith(PATHS):
            return await self._app(scope, receive, send)
        stream, tail = False, b""

        async def send_checked(message: Message) -> None:
            nonlocal stream, tail
            if message["type"] == "http.response.start":
                stream = message["status"] == 200 and _is_stream(message.get("headers", ()))
            elif stream and message["type"] == "http.response.body":
                tail = (tail + message.get("body", b""))[-_TAIL:]
                if not message.get("more_body", False) and not _is_complete(tail):
                    # Two line feeds first: the data before may end anywhere.
                    message = {**message, "body": message.get("body", b"") + b"\n\n" + _error()}
            await send(message)

        return await self._app(scope, receive, send_checked)


def middlewares() -> list[Any]:
    """Return the `starlette.middleware.Middleware` objects that Serve asks for. Starlette comes with Ray Serve."""
    from starlette.middleware import Middleware

    return [Middleware(TenantMiddleware), Middleware(StreamErrorMiddleware)]


def _is_stream(headers: Any) -> bool:
    return any(name.lower() == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers)


def _is_complete(tail: bytes) -> bool:
    return tail.rstrip().endswith(END)


def _error() -> bytes:
    """Return an error with the structure of vLLM's errors."""
    message = "the replica failed while it sent this answer, so the answer is incomplete; send the request again"
    error = {"message": message, "type": "InternalServerError", "param": None, "code": 500}
    return b"data: " + json.dumps({"error": error}).encode() + b"\n\n"
