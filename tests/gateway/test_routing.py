"""The model in a body."""

import json
import random

import pytest

from gateway.kit import endpoint, minimal_values, model, start_gateway, start_upstreams

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def gateway():
    with start_upstreams("one", "two") as (one, two):
        embeds = {"task": "embed", "versions": {"stable": {"routePrefix": "/", "endpoints": {"two": endpoint(two)}}}}
        values = {
            "tenants": {"acme": {"models": ["llama", "qwen", "embed"]}},
            "models": {"qwen": model(two), "secret": model(two), "embed": embeds},
        }
        values["tenants"]["boss"] = {"keys": {"secretName": "boss"}, "models": ["secret"]}
        with start_gateway(minimal_values(one, values)) as gateway:
            yield gateway


def as_bytes(body):
    """Return a body as bytes."""
    return body if isinstance(body, bytes) else body.encode()


def test_body_selects_the_model(gateway):
    assert gateway.chat("llama").endpoint == "one"
    assert gateway.chat("qwen").endpoint == "two"


BIG = "x" * 900_000


@pytest.mark.parametrize(
    "body",
    [
        '{"model":"qwen","messages":[]}',
        '{"messages":[],"model":"qwen"}',
        ' \r\n\t{ "model" \n:\t "qwen" } \n',
        '{"messages":[{"role":"user","content":"' + BIG + '"}],"model":"qwen"}',
        '{"model":"qwen","messages":[{"role":"user","content":"' + BIG + '"}]}',
        '{"messages":[{"content":"' + "\\n" * 400_000 + '"}],"model":"qwen"}',
        '{"a":[' + "[]," * 49_000 + '[]],"model":"qwen","b":[]}',
        '{"model":"qwen","a":[' + '"",' * 300_000 + '""]}',
        r'{"mod\u0065l":"qwen"}',
        r'{"\u006d\u006F\u0064\u0065\u006c":"qwen"}',
        r'{"model":"q\u0077en"}',
        r'{"model":"qw\u0065n"}',
        '{"tools":[{"function":{"parameters":{"properties":{"model":{"type":"string"}}}}}],"model":"qwen"}',
        '{"model":"qwen","metadata":{"model":"llama"}}',
        '{"metadata":{"model":"llama"},"model":"qwen"}',
        '{"metadata":{"model":["llama"]},"more":[{"model":"secret"}],"model":"qwen"}',
        '{"x":"model","model":"qwen"}',
        '{"model":"qwen","x":"model"}',
        '{"messages":[{"content":"say \\"model\\": \\"llama\\""}],"model":"qwen"}',
        '{"messages":[{"content":"\\\\"}],"model":"qwen","x":"\\\\\\""}',
        r'{"content":"\u00e9\u0061\ud83d\ude00","model":"qwen"}',
        '{"content":"é😀","model":"qwen"}',
        '{"deep":' + "[" * 100 + "]" * 100 + ',"model":"qwen"}',
        '{"deep":' + '{"model":' * 100 + "1" + "}" * 100 + ',"model":"qwen"}',
        '{"n":[1e5,-0.1,true,false,null],"model":"qwen"}',
        '{"Model":"llama","MODEL":"llama","model ":"llama","model":"qwen"}',
        '{"":"llama","model":"qwen"}',
    ],
)
def test_model_is_found_anywhere_in_the_body(gateway, body):
    assert json.loads(body)["model"] == "qwen", "the upstream reads this model"
    assert gateway.request(CHAT, as_bytes(body)).endpoint == "two"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('{"model":"llama","model":"secret"}', "duplicate_model"),
        ('{"model":"llama","model":"llama"}', "duplicate_model"),
        ('{"model":"llama","messages":[{"content":"' + BIG + '"}],"model":"secret"}', "duplicate_model"),
        (r'{"model":"llama","mod\u0065l":"secret"}', "duplicate_model"),
        (r'{"\u006dodel":"llama","\u006Dodel":"secret"}', "duplicate_model"),
        ('{"model":1,"model":"llama"}', "duplicate_model"),
        ('{"model":"llama","model":null}', "duplicate_model"),
        ('{"model":"llama","x":{"model":1},"model":["secret"]}', "duplicate_model"),
        ("{}", "model_missing"),
        ('{"messages":[{"model":"llama"}]}', "model_missing"),
        ('{"x":"model"}', "model_missing"),
        ('{"Model":"llama"}', "model_missing"),
        ('{"model":null}', "model_not_string"),
        ('{"model":7}', "model_not_string"),
        ('{"model":["llama"]}', "model_not_string"),
        ('{"model":{"model":"llama"}}', "model_not_string"),
        ('{"model":""}', "model_not_string"),
        ("", "invalid_json"),
        ("null", "invalid_json"),
        ('"model"', "invalid_json"),
        ('[{"model":"llama"}]', "invalid_json"),
        ("model=llama", "invalid_json"),
        ('{"model"', "invalid_json"),
        ('{"mod\\u0065l":"llama"', "invalid_json"),
        ('{"mod\\u0065l":"llama"}{}', "invalid_json"),
        ('{"deep":' + "[" * 600 + "]" * 600 + ',"model":"llama","x":{}}', "invalid_json"),
        ("\ufeff" + '{"mod\\u0065l":"llama"}', "invalid_json"),
        ('{"model":"llama"}'.encode("utf-16"), "invalid_json"),
        ('{"model":"llama"}'.encode("utf-32-be"), "invalid_json"),
        (b"\x1f\x8b\x08\x00", "invalid_json"),
        ('{"a":[' + '"",' * 300_000 + '""],"model":"llama","b":[]}', "body_too_complex"),
        ('{"a":[' + "[]," * 300_000 + '[]],"mod\\u0065l":"llama"}', "body_too_complex"),
        ("{" + '"":1,' * 150_000 + '"mod\\u0065l":"llama"}', "body_too_complex"),
    ],
)
def test_ambiguous_body_is_refused(gateway, body, code):
    response = gateway.request(CHAT, as_bytes(body))
    assert response.status == 400
    assert response.error["code"] == code


def test_broken_body_with_a_clear_model_is_forwarded(gateway):
    """The upstream refuses it. To validate each body here would double the cost."""
    assert gateway.request(CHAT, b'{"model":"llama", broken').endpoint == "one"
    assert gateway.request(CHAT, b'{"model":"secret", broken').status == 404


@pytest.mark.parametrize("name", ["gpt", "LLAMA", "llama ", "llama\\u0000", "llama:stable", "llama*", "qwen secret"])
def test_unknown_model_gets_404(gateway, name):
    response = gateway.request(CHAT, f'{{"model":"{name}"}}'.encode())
    assert response.status == 404
    assert response.error["code"] == "model_not_found"


def test_model_that_is_not_allowed_gets_the_response_of_an_unknown_one(gateway):
    for path, request in (("/v1/models/{}", {}), ("/{}/v1/models", {}), ("/{}/v1/chat/completions", {"method": "GET"})):
        forbidden, unknown = (gateway.request(path.format(name), **request) for name in ("secret", "sacred"))
        assert (forbidden.status, forbidden.body) == (unknown.status, unknown.body)
    forbidden, unknown = gateway.chat("secret"), gateway.chat("sacred")
    assert (forbidden.status, forbidden.body) == (unknown.status, unknown.body)
    assert forbidden.error["code"] == "model_not_found"
    assert gateway.chat("secret", key="boss-key").status == 200


def test_path_of_a_model_accepts_that_model_only(gateway):
    assert gateway.request("/qwen/v1/chat/completions", {"model": "qwen"}).endpoint == "two"
    response = gateway.request("/qwen/v1/chat/completions", {"model": "llama"})
    assert response.status == 400
    assert response.error["code"] == "model_mismatch"


def test_operation_of_another_task_gets_400(gateway):
    for path, name in ((CHAT, "embed"), ("/v1/embeddings", "llama")):
        response = gateway.request(path, {"model": name})
        assert response.status == 400
        assert response.error["code"] == "operation_not_supported"


def test_body_is_forwarded_unchanged(gateway):
    body = b' {"model" : "llama",\r\n "x": "\\u00e9 \xc3\xa9" } '
    assert gateway.request(CHAT, body).json()["length"] == len(body)


LEAVES = [
    '"model"',
    '"llama"',
    '"qwen"',
    "1",
    "null",
    "[]",
    "{}",
    r'"\""',
    r'"\\"',
    r'"\u006d"',
    '"}"',
    '","',
    '"a\\"model\\":"',
]
KEYS = ['"model"', r'"mod\u0065l"', '"Model"', '"x"', '"messages"', r'"\"model\""', '""', r'"\\"']


def generate_body(chance, depth=0):
    """Return a random JSON value that is hard to parse."""
    kind = chance.random()
    space = chance.choice(["", " ", "\n"])
    if depth > 3 or kind < 0.4:
        return chance.choice(LEAVES)
    if kind < 0.6:
        return "[" + ",".join(generate_body(chance, depth + 1) for _ in range(chance.randrange(3))) + "]"
    pairs = (
        f"{space}{chance.choice(KEYS)}{space}:{space}{generate_body(chance, depth + 1)}"
        for _ in range(chance.randrange(5))
    )
    return "{" + ",".join(pairs) + space + "}"


def expected_result(body):
    """Return the endpoint or the error code that Python's parser leads to."""
    pairs = json.loads(body, object_pairs_hook=lambda found: found)
    if not body.startswith("{"):
        return "invalid_json"
    models = [value for key, value in pairs if key == "model"]
    if len(models) != 1:
        return "duplicate_model" if models else "model_missing"
    if not isinstance(models[0], str) or not models[0]:
        return "model_not_string"
    return {"llama": "one", "qwen": "two"}.get(models[0], "model_not_found")


def test_random_bodies_are_read_as_python_reads_them(gateway):
    """Each body is also sent in chunks, where the gateway reads every token."""
    chance, seen = random.Random(5), set()
    with gateway.connect() as connection:
        for _ in range(1500):
            body = generate_body(chance)
            wanted = expected_result(body)
            seen.add(wanted)
            found = [connection.request(CHAT, body.encode())]
            chunked = [("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")]
            connection.send(head(chunked) + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body.encode()), body.encode()))
            found.append(connection.read_response())
            for response in found:
                assert (response.json()["endpoint"] if response.status == 200 else response.error["code"]) == wanted, (
                    body
                )
    names = {"invalid_json", "duplicate_model", "model_missing", "model_not_string", "model_not_found"}
    assert seen == names | {"one", "two"}


def head(headers):
    lines = [f"POST {CHAT} HTTP/1.1", "Host: x", "Authorization: Bearer acme-key", *(f"{k}: {v}" for k, v in headers)]
    return "\r\n".join([*lines, "", ""]).encode()
