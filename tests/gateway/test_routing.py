"""Which model a body names: wherever it stands, and never guessed."""

import json
import random

import pytest

from gateway.kit import endpoint, gateway, model, sites, smallest

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def door():
    with sites("one", "two") as (one, two):
        embeds = {"task": "embed", "versions": {"stable": {"routePrefix": "/", "endpoints": {"two": endpoint(two)}}}}
        values = {
            "tenants": {"acme": {"models": ["llama", "qwen", "embed"]}},
            "models": {"qwen": model(two), "secret": model(two), "embed": embeds},
        }
        values["tenants"]["boss"] = {"keys": {"secretName": "boss"}, "models": ["secret"]}
        with gateway(smallest(one, values)) as door:
            yield door


def said(body):
    """A body as bytes, and whatever the gateway answers."""
    return body if isinstance(body, bytes) else body.encode()


def test_the_body_names_the_model(door):
    assert door.chat("llama").site == "one"
    assert door.chat("qwen").site == "two"


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
        '{"a":[' + "[]," * 100_000 + '[]],"model":"qwen"}',
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
def test_the_model_is_found_wherever_it_stands(door, body):
    assert json.loads(body)["model"] == "qwen", "what the server behind reads"
    assert door.ask(CHAT, said(body)).site == "two"


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
    ],
)
def test_a_body_that_leaves_doubt_is_refused(door, body, code):
    answer = door.ask(CHAT, said(body))
    assert answer.status == 400
    assert answer.error["code"] == code


def test_a_broken_body_whose_model_is_in_no_doubt_is_left_to_the_server(door):
    """Python refuses it there; to parse every body here to its end would cost as much again."""
    assert door.ask(CHAT, b'{"model":"llama", broken').site == "one"
    assert door.ask(CHAT, b'{"model":"secret", broken').status == 403


@pytest.mark.parametrize("name", ["gpt", "LLAMA", "llama ", "llama\\u0000", "llama:stable", "llama*", "qwen secret"])
def test_a_model_that_is_not_there_gets_404(door, name):
    answer = door.ask(CHAT, f'{{"model":"{name}"}}'.encode())
    assert answer.status == 404
    assert answer.error["code"] == "model_not_found"


def test_a_model_beyond_the_allow_list_gets_403(door):
    assert door.chat("secret").error["code"] == "model_not_allowed"
    assert door.chat("secret", key="boss-key").status == 200


def test_an_address_of_a_model_takes_that_model_alone(door):
    assert door.ask("/qwen/v1/chat/completions", {"model": "qwen"}).site == "two"
    answer = door.ask("/qwen/v1/chat/completions", {"model": "llama"})
    assert answer.status == 400
    assert answer.error["code"] == "model_mismatch"


def test_a_model_that_cannot_do_it_says_so(door):
    for path, name in ((CHAT, "embed"), ("/v1/embeddings", "llama")):
        answer = door.ask(path, {"model": name})
        assert answer.status == 400
        assert answer.error["code"] == "operation_not_supported"


def test_the_body_goes_up_as_it_came(door):
    body = b' {"model" : "llama",\r\n "x": "\\u00e9 \xc3\xa9" } '
    assert door.ask(CHAT, body).json()["length"] == len(body)


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


def invented(chance, depth=0):
    """Some JSON value, with as many traps as will fit."""
    kind = chance.random()
    space = chance.choice(["", " ", "\n"])
    if depth > 3 or kind < 0.4:
        return chance.choice(LEAVES)
    if kind < 0.6:
        return "[" + ",".join(invented(chance, depth + 1) for _ in range(chance.randrange(3))) + "]"
    pairs = (
        f"{space}{chance.choice(KEYS)}{space}:{space}{invented(chance, depth + 1)}" for _ in range(chance.randrange(5))
    )
    return "{" + ",".join(pairs) + space + "}"


def expected(body):
    """Status and code, or the site, as Python's parser sees the body."""
    pairs = json.loads(body, object_pairs_hook=lambda found: found)
    if not body.startswith("{"):
        return "invalid_json"
    models = [value for key, value in pairs if key == "model"]
    if len(models) != 1:
        return "duplicate_model" if models else "model_missing"
    if not isinstance(models[0], str) or not models[0]:
        return "model_not_string"
    return {"llama": "one", "qwen": "two"}.get(models[0], "model_not_found")


def test_no_body_is_read_otherwise_than_python_reads_it(door):
    """Bodies full of traps, each also in chunks, where the gateway reads every token."""
    chance, seen = random.Random(5), set()
    with door.line() as line:
        for _ in range(1500):
            body = invented(chance)
            wanted = expected(body)
            seen.add(wanted)
            found = [line.ask(CHAT, body.encode())]
            chunked = [("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")]
            line.send(head(chunked) + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body.encode()), body.encode()))
            found.append(line.answer())
            for answer in found:
                assert (answer.json()["site"] if answer.status == 200 else answer.error["code"]) == wanted, body
    names = {"invalid_json", "duplicate_model", "model_missing", "model_not_string", "model_not_found"}
    assert seen == names | {"one", "two"}


def head(headers):
    lines = [f"POST {CHAT} HTTP/1.1", "Host: x", "Authorization: Bearer acme-key", *(f"{k}: {v}" for k, v in headers)]
    return "\r\n".join([*lines, "", ""]).encode()
