"""The second round of attacks: what a client with a valid key tried against models, engines and other tenants."""

import json
from typing import get_args

import pytest

from gateway.kit import endpoint, minimal_values, model, start_gateway, start_upstreams, tenant
from gateway.kit.connection import build_request
from gateway.kit.hostile import assert_unaffected, exchange
from rayhelm.deploy.values.gateway.limits import RefusedField

CHAT, COMPLETION, EMBEDDING, UPLOAD = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/whisper/v1/audio/transcriptions",
)
FIELDS = get_args(RefusedField)
MESSAGES = [{"role": "user", "content": "hi"}]
BIG = "x" * 900_000


@pytest.fixture(scope="module")
def environment():
    with start_upstreams("one") as (one,):
        whisper = {
            "task": "transcribe",
            "versions": {"stable": {"routePrefix": "/whisper", "endpoints": {"one": endpoint(one)}}},
        }
        values = {
            "tenants": {
                "acme": {"models": ["llama", "embed", "whisper"]},
                "boss": tenant("boss", ["secret"]),
            },
            "models": {
                "embed": model(one, task="embed", route="/embed"),
                "secret": model(one, route="/secret"),
                "whisper": whisper,
            },
            "validation": {"enabled": True},
        }
        with start_gateway(minimal_values(one, values)) as gateway, assert_unaffected(gateway, megabytes=400):
            yield gateway, one


@pytest.fixture
def send(environment):
    """Send bytes and return the exchange."""
    return lambda data: exchange(*environment, data)


# -- fields that choose what the operator chooses --------------------------------------------------------------------


def chat_with(raw, filler=""):
    """A valid chat with these raw members at the end, as bytes."""
    head = json.dumps({"model": "llama", "user": filler, "messages": MESSAGES})
    return f"{head[:-1]},{raw}}}".encode()


def chunked(path, body):
    headers = [("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")]
    start = build_request(path, headers=headers, method="POST")
    return start + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def assert_field_refused(found, name):
    (response,) = found.responses
    assert (response.status, response.error["code"], response.error["param"]) == (400, "field_not_allowed", name)
    assert (found.in_sync, found.requests) == (True, [])


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("filler", ["", "x" * 5000], ids=["small", "large"])
def test_field_of_the_operator_is_refused(send, name, filler):
    assert_field_refused(send(build_request(CHAT, chat_with(f'"{name}":{{"do_remote_prefill":true}}', filler))), name)


def escape(name, *at):
    """Write some letters as escapes, with capitals where there is more than one."""
    form = "04x" if len(at) == 1 else "04X"
    return "".join(f"\\u{ord(letter):{form}}" if index in at else letter for index, letter in enumerate(name))


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("part", ["first", "last", "underscore", "all"])
@pytest.mark.parametrize("filler", ["", "x" * 5000], ids=["small", "large"])
def test_escaped_name_of_a_field_is_refused(send, name, part, filler):
    places = {"first": [0], "last": [len(name) - 1], "underscore": [max(0, name.find("_"))], "all": range(len(name))}
    raw = f'"{escape(name, *places[part])}":1'
    assert json.loads("{" + raw + "}") == {name: 1}
    assert_field_refused(send(build_request(CHAT, chat_with(raw, filler))), name)


KV = "kv_transfer_params"
ATTEMPTS = {
    "null": (CHAT, chat_with(f'"{KV}":null')),
    "twice": (CHAT, chat_with(f'"{KV}":1,"{KV}":null')),
    "spaces": (CHAT, chat_with(f'"{KV}" \r\n\t: \n{{}}')),
    "far back": (CHAT, chat_with(f'"{KV}":{{}}', BIG)),
    "first": (CHAT, b'{"' + KV.encode() + b'":{},' + chat_with('"x":1')[1:]),
    "after a nested one": (CHAT, chat_with(f'"x":{{"{KV}":1}},"{KV}":1')),
    "after one in a text": (CHAT, chat_with(f'"x":"\\"{KV}\\":1","{KV}":1')),
    "after a backslash": (CHAT, chat_with(f'"x":"\\\\","{KV}":1')),
    "after few underscores": (CHAT, chat_with('"x":"' + "a_b " * 3 + f'","{KV}":{{}}')),
    "after many underscores": (CHAT, chat_with('"x":"' + "a_b " * 40 + f'","{KV}":{{}}')),
    "of a completion": (COMPLETION, b'{"model":"llama","prompt":"hi","kv_transfer_params":{}}'),
    "of an embedding": (EMBEDDING, b'{"model":"embed","input":"hi","priority":-9}'),
    "at the path of a model": ("/llama/v1/chat/completions", chat_with(f'"{KV}":{{}}')),
}


@pytest.mark.parametrize(("path", "body"), ATTEMPTS.values(), ids=ATTEMPTS)
@pytest.mark.parametrize("build", [build_request, chunked])
def test_field_is_refused_wherever_it_is(send, path, body, build):
    assert_field_refused(send(build(path, body)), "priority" if b"priority" in body else KV)


@pytest.mark.parametrize(
    "raw",
    [
        f'"extra_body":{{"{KV}":{{}}}}',
        '"tool_call_id":"call_1"',
        '"tool_call_id":"request_id"',
        '"chat_template_kwargs":{"chat_template":"{{ x }}"}',
        f'"metadata":{{"x":[{{"{KV}":1}}]}}',
        '"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"priority":{}}}}}]',
        '"Kv_Transfer_Params":{}',
        f'"{KV} ":{{}}',
        f'"\\u006bv-transfer-params":"{KV}"',
        '"cache_salt":"mine"',
    ],
)
@pytest.mark.parametrize("filler", ["", "x" * 5000], ids=["small", "large"])
def test_names_that_vllm_reads_as_no_such_field_are_forwarded(send, raw, filler):
    """`extra_body` is of the OpenAI client: no server reads it. vLLM refuses templates in `chat_template_kwargs`."""
    body = chat_with(raw, filler)
    found = send(build_request(CHAT, body))
    assert (found.statuses, found.requests[0].body) == ([200], body)
    assert not set(json.loads(body)) & set(FIELDS)


def test_field_is_forwarded_only_when_a_reason_allows_it(environment):
    _, one = environment
    allowed = {"validation": {"allowedFields": {"priority": "the scheduler of this model is by priority"}}}
    with start_gateway(minimal_values(one, allowed)) as gateway:
        assert gateway.request(CHAT, chat_with('"priority":-9')).status == 200
        assert gateway.request(CHAT, chat_with(f'"{KV}":{{}}')).error["code"] == "field_not_allowed"
    unchecked = {"validation": {"enabled": False}}
    with start_gateway(minimal_values(one, unchecked)) as gateway:
        assert gateway.request(CHAT, {"model": "llama", "priority": -9}).error["code"] == "field_not_allowed"


# -- headers that Ray and vLLM interpret -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Request-Timeout-Seconds", "0"),
        ("X-Request-Timeout-Seconds", "1e9"),
        ("X-Request-Disconnect-Disabled", "?1"),
        ("x-request-disconnect-disabled", "?1"),
        ("X-Vllm-Priority", "-100"),
        ("X-data-parallel-rank", "1"),
        ("X-Body-Truncated", "1"),
        ("X-Serve-Router-Kv-Token-Key", "boss"),
        ("X-Session-ID", "boss"),
        ("Endpoint-Load-Metrics-Format", "json"),
        ("Serve_Multiplexed_Model_Id", "boss"),
        ("X-Ray-Authorization", "Bearer boss"),
    ],
)
def test_header_that_ray_or_vllm_would_interpret_is_not_forwarded(send, name, value):
    found = send(build_request(CHAT, chat_with('"x":1'), headers=[(name, value)]))
    assert found.statuses == [200]
    (request,) = found.requests
    assert name.lower() not in {key.lower() for key, _ in request.headers}
    assert len([key for key, _ in request.headers if key == "x-request-id"]) == 1


# -- models and keys of others ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "secret",
        "secre\uff54",
        "secre\u0442",
        "secret\u200b",
        "SECRET",
        "secre%74",
        "llama,secret",
        "llama:secret",
        "a/../secret",
    ],
)
def test_model_of_another_tenant_answers_like_one_that_does_not_exist(send, name):
    body = {"model": name, "messages": MESSAGES}
    found, unknown = send(build_request(CHAT, body)), send(build_request(CHAT, {**body, "model": "nothing"}))
    assert (found.statuses, found.requests) == ([404], [])
    assert found.responses[0].body == unknown.responses[0].body


@pytest.mark.parametrize("path", ["/secret/v1/chat/completions", "/nothing/v1/chat/completions"])
def test_path_of_another_tenants_model_answers_like_one_that_does_not_exist(send, path):
    found = send(build_request(path, chat_with('"x":1')))
    assert ([response.error["code"] for response in found.responses], found.requests) == (["unknown_url"], [])


@pytest.mark.parametrize(
    "target", [f"{CHAT}?api_key=boss-key", f"{CHAT}?key=boss-key", f"http://boss-key:x@gateway.example{CHAT}"]
)
def test_key_is_read_from_no_other_part_of_the_request(send, target):
    found = send(build_request(target, chat_with('"x":1'), key=None))
    assert (found.statuses, found.requests) == ([401], [])


@pytest.mark.parametrize("key", ["ａcme-key", "acme-key\u200b", "acme%2dkey", "YWNtZS1rZXk=", "acme-key\\"])  # noqa: RUF001
def test_key_is_compared_byte_by_byte(send, key):
    raw = key.encode().decode("latin-1")
    found = send(build_request(CHAT, chat_with('"x":1'), key=None, headers=[("Authorization", f"Bearer {raw}")]))
    assert found.statuses in ([400], [401])
    assert found.requests == []


# -- operations of vLLM and Ray that are not for clients -------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/sleep", "/wake_up", "/reset_prefix_cache", "/pause"),
        *("/collective_rpc", "/update_weights", "/init_weight_transfer_engine", "/start_profile", "/server_info"),
        *("/v1/files", "/v1/batches", "/v1/chat/completions/batch", "/v1/responses/resp_1", "/v1/realtime"),
        *("/invocations", "/inference/v1/generate", "/pooling", "/abort_requests", "/scale_elastic_ep", "/load"),
        *("/api/jobs/", "/api/serve/applications/", "/-/routes", "/-/healthz"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "/llama", "/whisper"])
def test_operation_that_is_not_for_clients_is_unknown(send, path, prefix):
    for method in ("GET", "POST"):
        found = send(build_request(prefix + path, chat_with('"x":1'), method=method))
        assert ([response.error["code"] for response in found.responses], found.requests) == (["unknown_url"], [])


# -- forms -----------------------------------------------------------------------------------------------------------


def form(*fields):
    parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields]
    return "".join([*parts, "--b--\r\n"]).encode()


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=b", "application/x-www-form-urlencoded", "text/json"])
def test_chat_in_a_form_is_refused(send, kind):
    body = form(("model", "secret"))
    start = build_request(CHAT, method="POST", headers=[("Content-Type", kind), ("Content-Length", str(len(body)))])
    found = send(start + body)
    assert (found.statuses, found.requests) == ([415], [])


@pytest.mark.parametrize(
    "fields", [[("model", "secret")], [("model", "whisper"), ("model", "secret")], [("file", "x")]]
)
def test_form_reaches_only_the_model_of_its_path(send, fields):
    body = form(*fields)
    headers = [("Content-Type", "multipart/form-data; boundary=b"), ("Content-Length", str(len(body)))]
    found = send(build_request(UPLOAD, method="POST", headers=headers) + body)
    assert found.statuses == [200]
    assert [request.path for request in found.requests] == ["/whisper/v1/audio/transcriptions"]
