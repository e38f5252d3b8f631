"""New limits and weights while HAProxy runs: the kubelet replaces the maps, and no process starts again."""

import threading

import pytest

from charts.kit import over
from gateway.kit import endpoint, start_gateway, start_upstreams, tenant, wait_for
from gateway.kit.process import replace_file

LIMIT, KINDS = "rayhelm_gateway_limit", ("requests_per_minute", "concurrency")


def values(two, old=100, new=0, **acme):
    def version(upstream, weight):
        return {"weight": weight, "routePrefix": f"/{upstream.name}", "endpoints": {upstream.name: endpoint(upstream)}}

    return {
        "tenants": {
            "acme": tenant("acme", ["llama"], **acme),
            "counted": tenant("counted", ["llama"], tokensPerMinute=1_000_000),
            "pinned": tenant("pinned", ["llama"], pinnedVersions={"llama": "stable"}),
        },
        "models": {"llama": {"versions": {"stable": version(two[0], old), "canary": version(two[1], new)}}},
        "timeouts": {"keyRefreshSeconds": 1},
    }


@pytest.fixture(scope="module")
def two():
    with start_upstreams("old", "new") as found:
        yield found


@pytest.fixture
def gateway(two):
    with start_gateway(values(two)) as gateway:
        gateway.wait_for_output("are in effect")
        yield gateway


def apply(gateway, edited):
    """Replace the maps, and wait until the process has taken them over."""
    before = gateway.output.count("are in effect")
    gateway.replace_config(edited)
    wait_for(lambda: gateway.output.count("are in effect") > before, "the new maps are in effect")


def count_answers(gateway):
    return gateway_metric(gateway, "rayhelm_gateway_requests_total", code="2xx")


def gateway_metric(gateway, name, **labels):
    text = gateway.request_metrics_port("/metrics/tenants")[1]
    lines = [line for line in text.splitlines() if line.split("{")[0].split(" ")[0] == name]
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if all(part in line for part in wanted))


def test_shift_of_weights_under_load_loses_no_request_and_no_count(two, gateway):
    stop, failed, sent = threading.Event(), [], []

    def send():
        with gateway.connect() as connection:
            while not stop.is_set():
                response = connection.request("/v1/chat/completions", {"model": "llama"})
                sent.append(response.endpoint if response.status == 200 else "")
                if response.status != 200:
                    failed.append(response.status)

    clients = [threading.Thread(target=send) for _ in range(4)]
    for client in clients:
        client.start()
    try:
        wait_for(lambda: len(sent) > 100, "requests")
        assert set(sent) == {"old"}
        for old, new in ((80, 20), (99, 1), (0, 100)):
            apply(gateway, values(two, old, new))
            seen = len(sent)
            wait_for(lambda seen=seen: "new" in sent[seen:], f"requests to the canary at {new} percent")
        shifted = len(sent) + len(clients)
        wait_for(lambda: len(sent) > shifted + 100, "requests")
    finally:
        stop.set()
        for client in clients:
            client.join(300)
    assert not failed
    assert set(sent[shifted:]) == {"new"}
    wait_for(lambda: count_answers(gateway) == len(sent), "every answer is counted, also those before the shifts")
    assert gateway.chat(key="pinned-key").endpoint == "old"


def test_new_limits_count_the_requests_before_them(two, gateway):
    for _ in range(5):
        assert gateway.chat().status == 200
    apply(gateway, values(two, requestsPerMinute=5))
    assert gateway.chat().error["code"] == "rate_limit_exceeded"
    assert gateway_metric(gateway, LIMIT, tenant="acme", limit="requests_per_minute") == 5
    apply(gateway, values(two))
    assert gateway.chat().status == 200


@pytest.mark.parametrize("limits", ["0 10000", "1000000 0"], ids=["rate", "concurrency"])
def test_limit_of_0_refuses_new_requests_and_lets_running_ones_end(two, gateway, limits):
    """The chart refuses such values, so only a person who edits the ConfigMap can set them."""
    gate, found = two[0].gate(), []

    async def wait(request, reply):
        await gate.wait()
        await two[0].echo(request, reply)

    two[0].respond = wait
    try:
        before = len(two[0].requests)
        client = threading.Thread(target=lambda: found.append(gateway.chat()))
        client.start()
        wait_for(lambda: len(two[0].requests) > before, "the request")
        rate, concurrency = limits.split()
        for name, value in (("limits", limits), ("rate-limits", rate), ("concurrency-limits", concurrency)):
            file = gateway.folder / f"{name}.map"
            lines = file.read_text().splitlines()
            replace_file(
                file, "\n".join(f"acme {value}" if line.startswith("acme ") else line for line in lines) + "\n"
            )
        wait_for(
            lambda: {gateway_metric(gateway, LIMIT, tenant="acme", limit=each) for each in KINDS} >= {0}, "the limit"
        )
        assert gateway.chat().status == 429
        gate.open()
        client.join(300)
        assert [response.status for response in found] == [200]
    finally:
        two[0].respond = two[0].echo


def test_token_limit_applies_to_a_tenant_that_had_none(two, gateway):
    apply(gateway, values(two, tokensPerMinute=1000))
    assert gateway_metric(gateway, LIMIT, tenant="acme", limit="tokens_per_minute") == 1000
    assert gateway.chat().status == 200
    gateway.wait_for_output('"tokens":"')
    apply(gateway, values(two))
    assert gateway_metric(gateway, LIMIT, tenant="acme", limit="tokens_per_minute") == 0


def test_new_token_limit_applies_to_a_tenant_that_is_refused(two, gateway):
    def use_up():
        apply(gateway, values(two, tokensPerMinute=2))
        wait_for(lambda: gateway.chat().status == 429, "the limit")
        assert gateway.chat().error["code"] == "token_limit_exceeded"

    use_up()
    apply(gateway, values(two, tokensPerMinute=3))
    assert gateway.chat().status == 429, "what was used stays"
    apply(gateway, values(two, tokensPerMinute=1_000_000))
    assert gateway.chat().status == 200
    use_up()
    apply(gateway, values(two))
    assert gateway.chat().status == 200
    apply(gateway, values(two, tokensPerMinute=1_000))
    assert gateway.chat().status == 200


BAD = {
    "half written": ("rate-limits.map", lambda text: text[: len(text) // 2], "rate-limits.map is not complete"),
    "empty": ("limits.map", lambda text: "", "limits.map is not complete"),
    "no number": (
        "limits.map",
        lambda text: text.replace("acme 1000000", "acme many"),
        "no valid limits of tenant acme",
    ),
    "no tenant": ("limits.map", lambda text: text.replace("acme ", "other "), "no valid limits of tenant acme"),
    "two limits": ("rate-limits.map", lambda text: text.replace("acme 1000000", "acme 5"), "differ for tenant acme"),
    "version": ("slot-versions.map", lambda text: text.replace("stable", "gone"), "no known version in slot 0"),
    "slot": ("slot-counts.map", lambda text: text.replace("llama 1", "llama 7"), "no known version in slot 1"),
    "no slot": ("slot-counts.map", lambda text: text.replace("llama 1", "llama 0"), "no valid count of model llama"),
    "access": ("access.map", lambda text: text.replace("stable", "gone"), "unknown version of model llama"),
}


def test_wrong_maps_are_refused_and_the_last_ones_stay(two, gateway):
    for name, (file, edit, message) in BAD.items():
        good = (gateway.folder / file).read_text()
        assert edit(good) != good, name
        replace_file(gateway.folder / file, edit(good))
        gateway.wait_for_output(message)
        wait_for(lambda: gateway_metric(gateway, "rayhelm_gateway_maps_refused") == 1, name)
        assert gateway.chat().endpoint == "old", name
        assert gateway_metric(gateway, LIMIT, tenant="acme", limit="requests_per_minute") == 1_000_000
        replace_file(gateway.folder / file, good)
        wait_for(lambda: gateway_metric(gateway, "rayhelm_gateway_maps_refused") == 0, f"{name}: accepted again")


def test_maps_of_another_configuration_wait_for_their_own_pods(two, gateway):
    edited = over(values(two, requestsPerMinute=1), {"timeouts": {"connectSeconds": 9}})
    gateway.replace_config(edited)
    gateway.wait_for_output("the configuration is for other pods")
    assert [gateway.chat().status for _ in range(3)] == [200] * 3
    assert gateway_metric(gateway, "rayhelm_gateway_maps_refused") == 0
    assert gateway_metric(gateway, "rayhelm_gateway_maps_for_other_pods") == 1
    apply(gateway, values(two, requestsPerMinute=50))
    assert gateway_metric(gateway, "rayhelm_gateway_maps_for_other_pods") == 0


def test_limits_of_5000_tenants_are_taken_over_while_requests_run(two):
    tenants = [f"team-{number}" for number in range(5000)]

    def more(name, value):
        return lambda text: "".join(f"{tenant}{name} {value}\n" for tenant in tenants) + text

    def limits(rate):
        edits = {"limits": ("", f"{rate} 64"), "rate-limits": ("", rate), "concurrency-limits": ("", 64)}
        return {f"{name}.map": more(*edit) for name, edit in edits.items()}

    edit = {"tenants.map": lambda text: "\n".join(tenants) + "\n" + text, "access.map": more(":llama", "stable")}
    with start_gateway(values(two), edit=edit | limits(10)) as gateway:
        start = {name: (gateway.folder / name).read_text() for name in limits(10)}
        for name, text in start.items():
            replace_file(gateway.folder / name, text.replace(" 10 64\n", " 20 64\n").replace(" 10\n", " 20\n"))
        with gateway.connect() as connection:

            def is_done():
                assert connection.request("/v1/chat/completions", {"model": "llama"}).status == 200
                return gateway_metric(gateway, LIMIT, tenant="team-4999", limit="requests_per_minute") == 20

            wait_for(is_done, "the new limits")
        gateway.wait_for_output("limits of 5003 tenants")
        assert gateway_metric(gateway, LIMIT, limit="requests_per_minute") == 5000 * 20 + 3_000_000
