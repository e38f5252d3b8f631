"""Streams that lost their replica say so. Serve's proxies call `middlewares` where
`RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH` names it.

A stream of OpenAI's API ends with `data: [DONE]`. Where the replica behind Ray Serve LLM's ingress dies, the ingress
ends the body as if all had been said: Starlette's BaseHTTPMiddleware swallows what went wrong. Nobody behind it could
tell such an answer from a short one, so the proxy, which sees every byte, sends the error that vLLM sends and OpenAI's
clients raise.
"""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

__all__ = ["BrokenStreams", "middlewares"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

PATHS = ("/chat/completions", "/completions")
"""Whose streams end with that line; other server-sent events end as they like."""
END = b"data: [DONE]"
_TAIL = 64
"""Bytes that are remembered: the end and the empty lines after it, however they were cut into pieces."""


class BrokenStreams:
    """ASGI middleware. Pieces go on as they come; only the last one may get an error in front of it."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].rstrip("/").endswith(PATHS):
            return await self._app(scope, receive, send)
        stream, tail = False, b""

        async def watched(message: Message) -> None:
            nonlocal stream, tail
            if message["type"] == "http.response.start":
                stream = message["status"] == 200 and _is_stream(message.get("headers", ()))
            elif stream and message["type"] == "http.response.body":
                tail = (tail + message.get("body", b""))[-_TAIL:]
                if not message.get("more_body", False) and not _ended(tail):
                    # Two line ends first: the piece before may have been cut anywhere.
                    message = {**message, "body": message.get("body", b"") + b"\n\n" + _error()}
            await send(message)

        return await self._app(scope, receive, watched)


def middlewares() -> list[Any]:
    """What Serve asks for: `starlette.middleware.Middleware` objects. Starlette comes with Ray Serve."""
    from starlette.middleware import Middleware

    return [Middleware(BrokenStreams)]


def _is_stream(headers: Any) -> bool:
    return any(name.lower() == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers)


def _ended(tail: bytes) -> bool:
    return tail.rstrip().endswith(END)


def _error() -> bytes:
    """Of the shape of vLLM's own."""
    message = "the replica that was answering is gone: what came before is not the whole answer; ask again"
    error = {"message": message, "type": "InternalServerError", "param": None, "code": 500}
    return b"data: " + json.dumps({"error": error}).encode() + b"\n\n"
