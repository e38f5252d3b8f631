"""What Ray imports of rayhelm in a serving image, where the wheel lies without any of its requirements."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.serve

QUEUE = "rayhelm.runtime.engine_queue"
TOKENS = "rayhelm.runtime.token_usage"
LOG = "rayhelm.runtime.request_log"
SPEECH = "rayhelm.runtime.speech"


@pytest.mark.parametrize(
    ("imported", "brought"),
    [
        (f"{QUEUE}.policy", {QUEUE, f"{QUEUE}.decision", f"{QUEUE}.signals"}),
        ("rayhelm.runtime.stream_errors", {LOG, TOKENS, f"{TOKENS}.ledger"}),
        (
            f"{TOKENS}.engine",
            {
                LOG,
                "rayhelm.runtime.engine_log",
                TOKENS,
                *(f"{TOKENS}.{name}" for name in ("ledger", "metrics", "requests")),
            },
        ),
        ("rayhelm.runtime.log_relay", set()),
        (
            SPEECH,
            {f"{SPEECH}.{name}" for name in ("application", "encoding", "engine", "errors", "request")},
        ),
        ("rayhelm.runtime.tracing", {"rayhelm.runtime.stream_errors", LOG, TOKENS, f"{TOKENS}.ledger"}),
    ],
)
def test_runtime_module_needs_only_packages_of_the_image(imported: str, brought: set[str]) -> None:
    program = f"import sys, {imported}; print(*(name for name in sys.modules if name.partition('.')[0] == 'rayhelm'))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    # Packages may log to standard output while they are imported.
    assert set(found.splitlines()[-1].split()) == {"rayhelm", "rayhelm.runtime", imported, *brought}


def test_serve_proxies_accept_the_middleware() -> None:
    """As Serve's proxies call it, and check what it returns."""
    from ray.serve._private.http_util import validate_http_proxy_callback_return
    from ray.serve._private.utils import call_function_from_import_path

    found = validate_http_proxy_callback_return(
        call_function_from_import_path("rayhelm.runtime.stream_errors:middlewares")
    )
    assert [middleware.cls.__name__ for middleware in found] == ["TenantMiddleware", "StreamErrorMiddleware"]


def test_serve_accepts_middleware_and_span_processors_of_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Serve's proxies and replicas call them, and check what they return."""
    from ray.serve._private.http_util import validate_http_proxy_callback_return
    from ray.serve._private.tracing_utils import _load_span_processors
    from ray.serve._private.utils import call_function_from_import_path

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1")
    found = validate_http_proxy_callback_return(call_function_from_import_path("rayhelm.runtime.tracing:middlewares"))
    names = [middleware.cls.__name__ for middleware in found]
    assert names == ["TraceMiddleware", "TenantMiddleware", "StreamErrorMiddleware"]
    (processor,) = _load_span_processors("rayhelm.runtime.tracing:span_processors", "")
    processor.shutdown()
