"""Bodies that two parsers could read differently: written by hand, and mutated by chance."""

import json
import random

__all__ = ["REFUSED", "SERVED", "as_bytes", "find_model_in_python", "mutate"]

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


def as_bytes(body: str | bytes) -> bytes:
    return body.encode() if isinstance(body, str) else body


def find_model_in_python(body: str | bytes) -> object:
    """Return the model that FastAPI finds in a body; None if it refuses the body."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content.get("model", "nothing") if isinstance(content, dict) else "nothing"


ORDINARY = [
    b'{"model":"llama"}',
    b'{"model":"llama","messages":[{"role":"user","content":"hi"}],"stream":true}',
    b'{"messages":[{"role":"user","content":"say \\"hi\\""}],"max_tokens":5,"model":"llama"}',
    b'{"model": "llama", "tools": [{"function": {"name": "f"}}], "user": "x", "n": 1}',
]
SEEDS = ORDINARY * 4 + [
    as_bytes(body) for body in (*REFUSED.values(), *SERVED.values(), *SERVED.values()) if len(body) < 500
]
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


def mutate(chance: random.Random) -> bytes:
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
