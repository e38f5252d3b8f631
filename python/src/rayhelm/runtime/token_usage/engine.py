"""vLLM's engine of Ray Serve LLM, which counts tokens by tenant and logs requests.

The tenant is a header of the request. It is known where Ray Serve LLM calls the engine. The tokens are known in the
state that vLLM's output processor has of each request. A context variable connects both: vLLM registers a request in
the task of the request, or in a task that this one starts. So a request that the client leaves counts until vLLM aborts
it, as in `vllm:generation_tokens`, and an embedding counts its prompt.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from ray.llm._internal.serve.engines.vllm.vllm_engine import VLLMEngine

from rayhelm.runtime.engine_log import log_requests, remember_request
from rayhelm.runtime.request_log import App, Message, Receive, Send
from rayhelm.runtime.token_usage.ledger import UNKNOWN, TokenLedger
from rayhelm.runtime.token_usage.metrics import TokenCounters
from rayhelm.runtime.token_usage.requests import RunningRequests

__all__ = ["TokenCountingEngine", "count_tokens"]

_tenant: ContextVar[str] = ContextVar("rayhelm_tenant", default=UNKNOWN)
"""Tenant of the request that this task processes."""


class TokenCountingEngine(VLLMEngine):  # type: ignore[misc]
    """`VLLMEngine` with a ledger. It serves in the same way if the ledger fails."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._ledger = TokenLedger()
        self._requests: RunningRequests | None = None

    async def start(self) -> None:
        is_new = self._engine_client is None
        await super().start()
        if not is_new:
            return
        try:
            self._ledger.sinks.append(TokenCounters(_name_model(self._engine_client)))
            self._requests = count_tokens(self._engine_client.output_processor, self._ledger)
            log_requests(self._engine_client.output_processor, _name_model(self._engine_client))
        except Exception:
            self._ledger.report_failure()

    async def shutdown(self) -> None:
        if self._requests:
            self._requests.collect()
        await super().shutdown()

    # Each returns vLLM's generator itself: one around it would delay the abort of a request that the client left.

    def chat(self, request: Any, raw_request_info: Any = None) -> Any:
        self._remember_tenant(raw_request_info)
        return super().chat(request, raw_request_info)

    def completions(self, request: Any, raw_request_info: Any = None) -> Any:
        self._remember_tenant(raw_request_info)
        return super().completions(request, raw_request_info)

    def embeddings(self, request: Any, raw_request_info: Any = None) -> Any:
        self._remember_tenant(raw_request_info)
        return super().embeddings(request, raw_request_info)

    def score(self, request: Any, raw_request_info: Any = None) -> Any:
        self._remember_tenant(raw_request_info)
        return super().score(request, raw_request_info)

    def transcriptions(self, request: Any, raw_request_info: Any = None) -> Any:
        self._remember_tenant(raw_request_info)
        return super().transcriptions(request, raw_request_info)

    async def build_asgi_app(self) -> Any:
        """Return vLLM's own routes, to which Serve's HAProxy sends requests with `serve.dataPath: Direct`. They call
        the client of the engine, and no method above."""
        app = await super().build_asgi_app()
        # vLLM built the stack already; without it, Starlette builds it again.
        app.middleware_stack = None
        app.add_middleware(_TenantOfRequest, remember=self._remember)
        return app

    def _remember_tenant(self, raw_request_info: Any) -> None:
        self._remember(getattr(raw_request_info, "headers", None))

    def _remember(self, headers: Mapping[str, str] | None) -> None:
        try:
            _tenant.set(self._ledger.name_tenant(headers))
            remember_request(_tenant.get())
        except Exception:
            self._ledger.report_failure()


class _TenantOfRequest:
    """ASGI middleware that remembers the tenant in the task of the request. Passes messages on unchanged."""

    def __init__(self, app: App, remember: Callable[[Mapping[str, str]], None]) -> None:
        self._app, self._remember = app, remember

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._remember({name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]})
        await self._app(scope, receive, send)


def count_tokens(processor: Any, ledger: TokenLedger) -> RunningRequests:
    """Count the requests of vLLM's output processor in a ledger. Raises AttributeError for an unknown vLLM."""
    add_request, states = processor.add_request, processor.request_states
    requests = RunningRequests(ledger, lambda state: states.get(state.request_id) is state)

    def add_counted_request(request: Any, *args: Any, **kwargs: Any) -> None:
        is_new = request.request_id not in states
        add_request(request, *args, **kwargs)
        try:
            # A request with streamed input is added once for each part.
            if is_new and (state := states.get(request.request_id)):
                requests.add(state, _tenant.get())
        except Exception:
            ledger.report_failure()

    processor.add_request = add_counted_request
    return requests


def _name_model(client: Any) -> str:
    """Return the label `model_name` of the engine's metrics."""
    return str(client.vllm_config.model_config.served_model_name)
