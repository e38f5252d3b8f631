"""Bodies that two parsers could read differently. The gateway refuses them, or Python finds the same model in them.

If Python's parser found another model than the gateway, a tenant could use a model that it must not use.
"""

import json
import random

import pytest

from gateway.kit import minimal_values, model, start_gateway, start_upstreams, tenant
from gateway.kit.connection import build_request
from gateway.kit.hostile import LAST, assert_unaffected, collect_responses

CHAT = "/v1/chat/completions"
ROUNDS, BATCH = 50, 80


@pytest.fixture(scope="module")
def environment():
    """Each model has its own upstream path, which shows the model that the gateway found. `secret` is not allowed."""
    with start_upstreams("one") as (one,):

        async def shortly(request, reply):
            await reply.raw(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

        one.respond = shortly
        values = {
            "tenants": {"acme": {"models": ["llama", "qwen"]}, "boss": tenant("boss", ["secret"])},
            "models": {
                "llama": {"versions": {"stable": {"routePrefix": "/llama"}}},
                "qwen": model(one, route="/qwen"),
                "secret": model(one, route="/secret"),
            },
        }
        with start_gateway(minimal_values(one, values)) as gateway, assert_unaffected(gateway, megabytes=400):
            yield gateway, one


def selected_model(request):
    """The model that the gateway found."""
    return request.path.split("/")[1]


def model_in_python(body):
    """The model that FastAPI finds in a body; None if it refuses the body."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content.get("model", "nothing") if isinstance(content, dict) else "nothing"


def assert_consistent(environment, bodies, way):
    """Send all bodies and assert that Python finds the same model in each forwarded one. Return the responses.

    The gateway reads small, large and chunked bodies in different ways."""
    gateway, one = environment
    before = len(one.requests)
    if way == "large":
        bodies = [body + b" " * 4098 for body in bodies]
    *responses, last = collect_responses(
        gateway, b"".join((chunked if way == "chunks" else with_length)(body) for body in bodies) + LAST
    )
    assert last.headers["x-request-id"] == "last"
    passed = [body for body, response in zip(bodies, responses, strict=True) if response.status == 200]
    assert [request.body for request in one.requests[before:]] == passed
    for request in one.requests[before:]:
        assert model_in_python(request.body) in (selected_model(request), None), request.body[:2000]
        assert selected_model(request) in ("llama", "qwen")
    for response in responses:
        assert response.status == 200 or 400 <= response.status < 500, response.body
        assert response.status == 200 or response.error["message"]
    return responses


def with_length(body):
    return build_request(CHAT, body)


def chunked(body):
    start = build_request(CHAT, headers=[("Transfer-Encoding", "chunked")], method="POST")
    at = len(body) // 2
    parts = [part for part in (body[:at], body[at:]) if part]
    return start + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


# -- by hand ---------------------------------------------------------------------------------------------------------

BIG = "x" * 900_000
REFUSED = {
    "two keys, far apart": '{"model":"llama","messages":[{"content":"' + BIG + '"}],"model":"secret"}',
    "two keys, one escaped": r'{"model":"llama","\u006dodel":"secret"}',
    "two keys, all escaped": r'{"\u006d\u006f\u0064\u0065\u006c":"llama","\u006D\u006F\u0064\u0065\u006C":"secret"}',
    "two keys, the second in a list of pairs": '{"model":"llama","x":[["model","secret"]],"model":"secret"}',
    "two keys, spaces between": '{"model" \n:\t"llama" , "model"\r:"secret"}',
    "two keys with the same value": '{"model":"llama","model":"llama"}',
    "a key after a string that ends in a backslash": r'{"x":"\\","model":"llama","y":"\\\\","model":"secret"}',
    "a key behind a quote in a string": r'{"x":"\",\"model\":\"llama\"}","model":"secret","model":"llama"}',
    "a key that ends like it": r'{"x\"model":"llama"}',
    "a key that ends like it, and it": r'{"x\"model":"llama","model":"secret"}',
    "a key that begins like it": r'{"model\"x":"llama"}',
    "a number": '{"model":7}',
    "a number with a point": '{"model":7.5}',
    "a number too large": '{"model":1e999}',
    "not a number": '{"model":NaN}',
    "true": '{"model":true}',
    "null": '{"model":null}',
    "a list": '{"model":["llama"]}',
    "an object": '{"model":{"model":"llama"}}',
    "a zero byte in the name": '{"model":"llama\\u0000"}',
    "a raw zero byte in the name": b'{"model":"llama\x00"}',
    "a name with a surrogate": r'{"model":"llama\ud800"}',
    "a name with a letter from another script": '{"model":"llаma"}',  # noqa: RUF001
    "a name too long": '{"model":"' + "llama" * 100_000 + '"}',
    "a name with a slash": '{"model":"../secret"}',
    "no object": '["model","llama"]',
    "two objects": '{"model":"llama"}{"model":"secret"}',
    "two lines": '{"mod\\u0065l":"llama"}\n{"model":"secret"}',
    "a mark of the byte order": b'\xef\xbb\xbf{"model":"llama"}',
    "UTF-16": '{"model":"llama"}'.encode("utf-16"),
    "UTF-16-LE without a BOM": '{"model":"llama"}'.encode("utf-16-le"),
    "UTF-16-BE without a BOM": '{"model":"llama"}'.encode("utf-16-be"),
    "UTF-32": '{"model":"llama"}'.encode("utf-32"),
    "UTF-16 with a body in ASCII inside": b"\xff\xfe" + '{"model":"secret"}'.encode("utf-16-le") + b'{"model":"llama"}',
    "spaces that make it look like UTF-16": b" \x00" + b'{"model":"llama"}',
    "a comment": '/* {"model":"llama"} */ {"mod\\u0065l":"secret"}',
    "other quotes": "{'model':'llama'}",
    "no quotes": "{model:llama}",
    "a form": "model=llama&stream=true",
    "nothing": "",
    "spaces": " " * 100_000,
    "zero bytes": b"\x00" * 100_000,
    "quotes": '"' * 100_000,
    "backslashes": '{"' + "\\" * 100_001,
    "commas": "{" + "," * 100_000,
    "a hundred thousand lists": '{"x":' + "[" * 100_000 + "]" * 100_000 + ',"model":"llama","model":"secret"}',
    "a hundred thousand objects": '{"x":' * 100_000 + "1" + "}" * 100_000,
    "lists without an end": "[" * 1_000_000,
    "a thousand keys": "{" + ",".join(['"model":"llama"'] * 1000) + "}",
}
SERVED = {
    "nested keys": '{"model":"llama","tools":[{"model":"secret","x":{"model":"secret"}}]}',
    "a nested key first": '{"tools":[{"model":"secret"}],"model":"llama"}',
    "a key in a string": r'{"x":"\"model\":\"secret\"","model":"llama"}',
    "a value that is the key": '{"x":"model","y":"model","model":"llama"}',
    "an escaped key": r'{"\u006dodel":"llama","x":"secret"}',
    "an escaped value": r'{"model":"ll\u0061ma"}',
    "keys that are nearly it": r'{"Model":"secret","model ":"secret","mode\u006c\u0020":"secret","model":"llama"}',
    "a key far back": '{"messages":[{"content":"' + BIG + '"}],"model":"llama"}',
    "ten thousand nested keys": '{"x":[' + ",".join(['{"model":"secret"}'] * 10_000) + '],"model":"llama"}',
    "not a number elsewhere": '{"x":[NaN,Infinity,-Infinity],"model":"llama"}',
    "a surrogate elsewhere": r'{"x":"\ud800","model":"llama"}',
    "two other keys": '{"x":1,"x":2,"model":"llama"}',
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("way", ["small", "large", "chunks"])
def test_invalid_body_is_refused(environment, body, way):
    (response,) = assert_consistent(environment, [as_bytes(body)], way)
    assert 400 <= response.status < 500


@pytest.mark.parametrize("body", SERVED.values(), ids=SERVED)
@pytest.mark.parametrize("way", ["small", "large", "chunks"])
def test_gateway_and_python_find_the_same_model(environment, body, way):
    assert model_in_python(body) == "llama"
    (response,) = assert_consistent(environment, [as_bytes(body)], way)
    assert response.status == 200


def in_two_widths(encoding):
    """The raw bytes contain the name llama; Python detects the encoding and finds another string."""
    hidden = b'","model":"llama","yy":"'.decode(encoding)
    return ('{"x":"' + hidden + '","model":"secret"}').encode(encoding)


@pytest.mark.parametrize("mark", [b"", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b" ", b" \x00", b"\x00 "])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("way", ["small", "large", "chunks"])
def test_body_is_refused_when_it_is_utf_16_or_utf_32(environment, encoding, mark, way):
    assert json.loads(in_two_widths(encoding))["model"] == "secret"
    (response,) = assert_consistent(environment, [mark + in_two_widths(encoding)], way)
    assert response.error["code"] == "invalid_json"


def as_bytes(body):
    return body.encode() if isinstance(body, str) else body


# -- by chance -------------------------------------------------------------------------------------------------------

SEEDS = [as_bytes(body) for body in (*REFUSED.values(), *SERVED.values(), *SERVED.values()) if len(body) < 500]
PIECES = [
    *(
        b'"',
        b"\\",
        b"\\\\",
        b'\\"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b" ",
        b"\n",
        b"\x00",
        b"\x0b",
        b"\xff",
        b"\xc3",
    ),
    *(b'"model"', b'"model":', b'"model":"llama"', b'"secret"', b'"qwen"', b"\\u006", b"\\u0000", b"\\/", b"\\x6d"),
    *(b"null", b"NaN", b"-0", b"1e5", b"/*", b"*/", b"//", b"#", b"'", b"\x7f", b"\r"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xa8", "é".encode(), "é".encode("utf-16")),
]
MEMBERS = [
    *(
        b'"model":"secret"',
        b'"model":"qwen"',
        b'"mod\\u0065l":"secret"',
        b'"\\u006Dodel":"qwen"',
        b'"model":7',
        b'"Model":"x"',
    ),
    *(b'"x":{"model":"secret"}', b'"x":[{"model":"secret"}]', b'"x":"model"', b'"model\\u0000":"secret"', b'"":""'),
    *(
        b'"x":"\\\\"',
        b'"x":"\\""',
        b'"x":"{"',
        b'"x":"}"',
        b'"x":",\\"model\\":"',
        b'"x":"\\u0022,\\u0022model"',
        b'"x":NaN',
    ),
    *(b'"mode\\l":"secret"', b'"mo\\del":"secret"', b'"model"\x0b:"secret"', b"'model':'secret'", b'model:"secret"'),
]


def mutated(chance):
    """Build a random body: insert, remove, double and swap parts of others, and change bytes."""
    body = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randrange(4)):
        start = chance.randrange(len(body) + 1)
        end = min(len(body), start + chance.randrange(30))
        match chance.randrange(10):
            case 0:
                body[start:start] = chance.choice(PIECES)
            case 1:
                body[start:end] = chance.choice(PIECES)
            case 2:
                del body[start:end]
            case 3:
                body[start:start] = body[start:end]
            case 4:
                other = chance.choice(SEEDS)
                body[start:] = other[chance.randrange(len(other) + 1) :]
            case 5 if body:
                body[start - 1] = chance.randrange(256)
            case _ if b"{" in body:
                edges = [at for at, byte in enumerate(body) if byte in b"{,"]
                at = chance.choice(edges) + 1
                body[at:at] = chance.choice(MEMBERS) + b","
    if chance.randrange(20):
        return bytes(body)
    width = chance.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig"])
    return body.decode("latin-1").encode(width)


@pytest.mark.parametrize("way", ["small", "large", "chunks"])
def test_random_bodies_are_never_read_in_two_ways(environment, way):
    chance, statuses = random.Random(20), []
    for _ in range(ROUNDS):
        responses = assert_consistent(environment, [mutated(chance) for _ in range(BATCH)], way)
        statuses += [response.status for response in responses]
    assert set(statuses) == {200, 400, 404}
    assert statuses.count(200) > len(statuses) / 10, "enough random bodies must be valid"
