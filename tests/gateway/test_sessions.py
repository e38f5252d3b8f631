"""Endpoints by session: requests of one user or conversation go to one endpoint, whatever their prompts are."""

import json

import pytest

from gateway.kit import model, start_gateway, start_upstreams, tenant
from gateway.kit.connection import build_request

CHAT = "/v1/chat/completions"
USERS = [f"user-{number}-of-a-long-name" for number in range(40)]
FIELDS = {"fields": ["prompt_cache_key", "user"]}


def values(*found, session, **more):
    balancing = {"loadBalancing": {"prefixBytes": 16, "session": session}}
    return {
        "tenants": {"acme": tenant("acme", ["llama"])},
        "models": {"llama": model(*found, **balancing)},
        "health": {"intervalSeconds": 3600},
        **more,
    }


@pytest.fixture(scope="module")
def three():
    with start_upstreams("one", "two", "three") as found:
        yield found


@pytest.fixture(scope="module")
def by_field(three):
    with start_gateway(values(*three, session=FIELDS)) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def by_header(three):
    with start_gateway(values(*three, session={"header": "X-Session-Id", **FIELDS})) as gateway:
        yield gateway


def find_endpoints(gateway, bodies, headers=()):
    """Return the endpoint of each body, one after the other: a request that HAProxy still counts could move another."""
    gateway.wait_until_idle()
    with gateway.connect() as connection:
        return [connection.request(CHAT, body, headers=headers).endpoint for body in bodies]


def chat(text="hello", **more):
    return {"model": "llama", "messages": [{"role": "user", "content": text}], **more}


def endpoint_of(gateway, *, headers=(), **more):
    (found,) = set(find_endpoints(gateway, [chat(f"{number}: {number}", **more) for number in range(12)], headers))
    return found


def test_requests_of_one_user_go_to_one_endpoint(by_field):
    assert len({endpoint_of(by_field, user=user) for user in USERS[:8]}) > 1


def test_users_are_spread_over_all_endpoints_when_their_prompts_are_equal(by_field):
    found = find_endpoints(by_field, [chat(user=user) for user in USERS])
    assert min(found.count(name) for name in ("one", "two", "three")) >= 5
    assert find_endpoints(by_field, [chat("another prompt", user=user) for user in USERS]) == found


def test_first_listed_field_selects_the_endpoint(by_field):
    by_user = find_endpoints(by_field, [chat(user=user) for user in USERS])
    assert find_endpoints(by_field, [chat(prompt_cache_key=user, user="same") for user in USERS]) == by_user
    assert find_endpoints(by_field, [chat(prompt_cache_key=None, user=user) for user in USERS]) == by_user
    assert find_endpoints(by_field, [chat(prompt_cache_key="", user=user) for user in USERS]) == by_user


@pytest.mark.parametrize("absent", [{}, {"user": None}, {"user": ""}, {"user": 7}, {"user": {"id": "x"}}])
def test_prefix_selects_the_endpoint_when_there_is_no_user(by_field, absent):
    texts = [f"{number}: you are a helpful assistant" for number in range(30)]
    found = find_endpoints(by_field, [chat(text, **absent) for text in texts])
    assert set(found) == {"one", "two", "three"}
    longer = [chat(text + " who knows", **absent) for text in texts]
    assert find_endpoints(by_field, longer) == found, "the prefix has 16 bytes"


def hidden(user):
    """Bodies with the same outermost user in other places, and with other texts that look like it."""
    quoted = json.dumps(user)
    message = '"messages":[{"role":"user","content":"x"}]'
    return [
        f'{{"user":{quoted},"model":"llama",{message}}}',
        f'{{"model":"llama",{message},"user" \n:\t{quoted}}}',
        f'{{"model":"llama",{message},"user":{quoted},"tools":[]}}',
        f'{{"tools":[{{"user":"inner"}}],"model":"llama","user":{quoted},{message}}}',
        f'{{"tools":[{{"user":"inner"}}],"model":"llama","us\\u0065r":{quoted},{message}}}',
        f'{{"model":"llama","x":"\\"user\\":\\"inner\\"","user":{quoted},{message}}}',
        f'{{"model":"llama","x\\"user":"inner","user":{quoted},{message}}}',
        f'{{"model":"llama","x":"[{{","user":{quoted},"y":"]}}",{message}}}',
        f'{{"user":"earlier","model":"llama",{message},"user":{quoted}}}',
    ]


def test_outermost_user_selects_the_endpoint(by_field):
    for user in USERS[:8]:
        wanted = endpoint_of(by_field, user=user)
        for body in hidden(user):
            assert json.loads(body)["user"] == user
            (found,) = find_endpoints(by_field, [body.encode()])
            assert found == wanted, body


def test_inner_user_selects_no_endpoint(by_field):
    """A tool with a parameter of this name would send all its requests to one endpoint."""
    bodies = [chat(f"{number}: hello", tools=[{"user": "same"}], x=[]) for number in range(30)]
    assert set(find_endpoints(by_field, bodies)) == {"one", "two", "three"}


def test_user_of_a_chunked_body_selects_the_endpoint(by_field):
    for user in USERS[:8]:
        body = json.dumps(chat(user=user)).encode()
        head = build_request(CHAT, headers=[("Transfer-Encoding", "chunked")], method="POST")
        by_field.wait_until_idle()
        response = by_field.send(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        assert response.endpoint == endpoint_of(by_field, user=user)


def test_completions_are_selected_by_user(by_field):
    for user in USERS[:8]:
        by_field.wait_until_idle()
        response = by_field.request("/v1/completions", {"model": "llama", "prompt": "hello", "user": user})
        assert response.endpoint == endpoint_of(by_field, user=user)


def test_model_server_gets_the_user_unchanged(by_field, three):
    before = [len(upstream.requests) for upstream in three]
    endpoint_of(by_field, user="alice")
    (request, *_) = [each for upstream, at in zip(three, before, strict=True) for each in upstream.requests[at:]]
    assert json.loads(request.body)["user"] == "alice"


def test_other_endpoints_get_the_users_of_a_dead_one(by_field, three):
    first = dict(zip(USERS, find_endpoints(by_field, [chat(user=user) for user in USERS]), strict=True))
    three[0].close()
    second = dict(zip(USERS, find_endpoints(by_field, [chat(user=user) for user in USERS]), strict=True))
    three[0].open()
    moved = [user for user in USERS if first[user] == "one"]
    assert moved
    assert {second[user] for user in moved} == {"two", "three"}
    assert all(second[user] == first[user] for user in USERS if user not in moved)


def test_header_selects_the_endpoint_before_fields(by_header):
    found = find_endpoints(by_header, [chat(user=user) for user in USERS])
    assert set(found) == {"one", "two", "three"}, "without the header, the user does"
    for user in USERS[:8]:
        named = [("X-Session-Id", user)]
        alone = endpoint_of(by_header, headers=named)
        assert {*find_endpoints(by_header, [chat(user=other) for other in USERS], named)} == {alone}
    some = {endpoint_of(by_header, headers=[("x-session-id", user)]) for user in USERS[:12]}
    assert some == {"one", "two", "three"}


def test_empty_header_selects_no_endpoint(by_header):
    bodies = [chat(user=user) for user in USERS]
    assert find_endpoints(by_header, bodies, [("X-Session-Id", "")]) == find_endpoints(by_header, bodies)


def test_model_server_does_not_get_the_session_header(by_header, three):
    before = [len(upstream.requests) for upstream in three]
    endpoint_of(by_header, headers=[("X-Session-Id", "alice")])
    (request, *_) = [each for upstream, at in zip(three, before, strict=True) for each in upstream.requests[at:]]
    assert request.header("x-session-id") is None


def test_prefix_selects_the_endpoint_when_only_a_header_names_sessions(three):
    with start_gateway(values(*three, session={"header": "X-Chat"})) as gateway:
        texts = [f"{number}: you are a helpful assistant" for number in range(30)]
        found = find_endpoints(gateway, [chat(text, user="same") for text in texts])
        assert set(found) == {"one", "two", "three"}
        assert find_endpoints(gateway, [chat(text + " who knows") for text in texts]) == found
        assert len({*find_endpoints(gateway, [chat(text) for text in texts], [("X-Chat", "7")])}) == 1


def test_models_have_sessions_of_their_own(three):
    both = values(*three, session=FIELDS)
    both["models"]["qwen"] = model(*three, route="/qwen")
    both["tenants"]["acme"]["models"].append("qwen")
    with start_gateway(both) as gateway:
        bodies = [{**chat(f"{number}: hello", user="same"), "model": "qwen"} for number in range(30)]
        assert set(find_endpoints(gateway, bodies)) == {"one", "two", "three"}
        assert endpoint_of(gateway, user="same")
