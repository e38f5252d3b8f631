"""Tenants of the fleet file: refused values, planned gateways and warnings of the plan."""

import pytest

from rayhelm.planner.plan import Plan
from shared.fleets import plan
from shared.small_fleet import SMALL, problems, read, the_problem

OWNED = "services: {chat: {tenant: a}}\n"


def plan_small(text: str) -> Plan:
    return plan(SMALL + text)


# -- the fleet file ----------------------------------------------------------------------------------------------------


def test_model_that_no_tenant_may_call_is_refused() -> None:
    more = SMALL + "  other: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096}\n"
    problem = the_problem(more + "tenants: {a: {models: [chat]}}\n")
    assert (problem.path, problem.line) == ("models.other", 6)
    assert "no tenant may call it" in problem.message
    assert problem.fix_text == "tenants:\n  a:\n    models: [chat, other]"
    read(more + "tenants: {a: {models: [chat, other]}}\n")
    read(more + "tenants: {a: {models: [chat]}}\nservices: {other: {aliases: {namespace: apps, names: [llm]}}}\n")


def test_secret_of_keys_is_named_after_the_tenant() -> None:
    fleet = read(SMALL + "tenants: {a: {models: [chat]}, b: {models: [chat], keys: {secret: mine}}}")
    assert (fleet.keys_of("a"), fleet.keys_of("b")) == ("gateway-keys-a", "mine")


@pytest.mark.parametrize("limit", ["requestsPerMinute", "tokensPerMinute", "concurrency"])
def test_tenant_limit_of_zero_is_refused(limit: str) -> None:
    problem = the_problem(SMALL + f"tenants:\n  a:\n    models: [chat]\n    {limit}: 0\n")
    assert (problem.path, problem.line) == (f"tenants.a.{limit}", 9)
    assert f"{limit}: " in str(problem.fix)


def test_model_listed_twice_is_refused() -> None:
    problem = the_problem(SMALL + "tenants:\n  a: {models: [chat, chat]}\n")
    assert (problem.path, str(problem.fix)) == ("tenants.a.models[1]", "models: [chat]")


@pytest.mark.parametrize(
    ("tenants", "at"),
    [
        ("a: {keys: {secret: ours}}, b: {keys: {secret: ours}}", "tenants.b.keys.secret"),
        ("a: {keys: {secret: gateway-keys-b}}, b: {}", "tenants.a.keys.secret"),
    ],
)
def test_tenants_with_the_same_keys_are_refused(tenants: str, at: str) -> None:
    problem = the_problem(SMALL + f"tenants: {{{tenants}}}\n")
    assert problem.path == at
    assert "a key has to identify one tenant" in problem.message
    assert str(problem.fix).startswith(f"secret: gateway-keys-{at.split('.')[1]}")


def test_gateway_namespace_of_a_service_is_refused() -> None:
    gateway = "clusters:\n  main:\n    gateway: {namespace: a}\n"
    problem = the_problem(SMALL + gateway + OWNED + "tenants: {a: {}}\n")
    assert (problem.path, problem.line) == ("clusters.main.gateway.namespace", 8)
    assert "could mount the keys of the tenants" in problem.message
    assert str(problem.fix).startswith("namespace: gateway")
    taken = the_problem(SMALL + OWNED + "tenants: {a: {namespace: gateway}}\n")
    assert taken.fix_text == "namespace: ai-gateway"


@pytest.mark.parametrize(
    ("tenants", "why"),
    [
        ("a: {}, b: {namespace: a}", "tenant `a` already has the namespace `a`"),
        ("a: {}, b: {namespace: tenants}", "namespace `tenants` has the releases of the chart `tenant`"),
        ("a: {}, b: {namespace: kube-system}", "namespace `kube-system` belongs to Kubernetes"),
        ("a: {}, b: {namespace: default}", "namespace `default` belongs to Kubernetes"),
        ("a: {}, b: {namespace: models}", "namespace `models` has service `other`, which has no owner"),
    ],
)
def test_namespace_with_two_owners_is_refused(tenants: str, why: str) -> None:
    text = f"""\
fleet: three
pools: {{gpu: {{gpu: L4-24GB, nodes: 3}}}}
models: {{one: {{source: x/y}}, two: {{source: x/y}}, other: {{source: x/y}}}}
services: {{one: {{tenant: a}}, two: {{tenant: b}}}}
tenants: {{{tenants}}}
"""
    problem = the_problem(text)
    assert problem.path == "tenants.b.namespace"
    assert why in problem.message
    assert str(problem.fix).startswith("namespace: b-models")


def test_service_of_an_unknown_tenant_is_one_problem() -> None:
    assert the_problem(SMALL + "services: {chat: {tenant: b}}\ntenants: {a: {}}\n").path == "services.chat.tenant"


@pytest.mark.parametrize(
    ("gateway", "why", "fix"),
    [
        (
            "host: ai.example.com",
            "`host` needs `ingress`, `httpRoute` or `tls`",
            "ingress: {className: nginx, tlsSecret: ai-tls, annotations: ",
        ),
        ("ingress: {tlsSecret: tls}", "the name that clients use", "host: ai.example.com"),
        ("host: x, ingress: {tlsSecret: tls}", "`allowedClients` is empty", "allowedClients: [ingress-nginx]"),
        ("host: x, ingress: {tlsSecret: tls}, httpRoute: {gateway: g}", "a host has one route", "# remove `httpRoute`"),
        ("tls: {secrets: [a], cidrs: [10.0.0.0/8]}", "`tls` needs `host`", "host: ai.example.com"),
        (
            "host: x, ingress: {tlsSecret: tls}, tls: {secrets: [a], cidrs: [10.0.0.0/8]}",
            "`ingress` and `tls` are both set",
            "# remove `tls`",
        ),
        ("host: x, tls: {secrets: [a], service: ClusterIP}", "refuses all clients of `tls`", "allowedClients: [apps]"),
        ("replicas: {min: 0, max: 3}", "a gateway needs a pod", "replicas: {min: 1, max: 3}"),
    ],
)
def test_gateway_with_an_incomplete_route_is_refused(gateway: str, why: str, fix: str) -> None:
    problem = the_problem(SMALL + f"clusters: {{main: {{gateway: {{{gateway}}}}}}}\n")
    assert problem.path == "clusters.main.gateway"
    assert why in problem.message
    assert fix in str(problem.fix)


def test_ingress_without_tls_is_refused() -> None:
    problem = the_problem(SMALL + "clusters: {main: {gateway: {host: x, ingress: {className: nginx}}}}\n")
    assert (problem.path, str(problem.fix)[:17]) == ("clusters.main.gateway.ingress.tlsSecret", "tlsSecret: ai-tls")


@pytest.mark.parametrize(
    ("tls", "field", "why", "fix"),
    [
        ("{secrets: [a]}", "", "`cidrs` is empty", "cidrs: [203.0.113.0/24]"),
        ("{secrets: [a], service: NodePort}", "", "a Service of type NodePort", "cidrs: [203.0.113.0/24]"),
        ("{secrets: [], cidrs: [10.0.0.0/8]}", ".secrets", "at least 1", "secrets: [ai-tls]"),
        ("{cidrs: [10.0.0.0/8]}", ".secrets", "missing", "secrets: [ai-tls]"),
        ("{secrets: [a, b, a], cidrs: [10.0.0.0/8]}", ".secrets", "`a` is listed twice", "secrets: [a, b]"),
        ("{secrets: [a..b], cidrs: [10.0.0.0/8]}", ".secrets[0]", "`a..b`", "secrets: ["),
        ("{secrets: [a], cidrs: [10.0.0.1/8]}", ".cidrs[0]", "is not a CIDR", "cidrs: [10.0.0.0/8]"),
    ],
)
def test_wrong_tls_of_the_gateway_is_refused(tls: str, field: str, why: str, fix: str) -> None:
    found = problems(SMALL + f"clusters: {{main: {{gateway: {{host: x, tls: {tls}}}}}}}\n")
    assert (found[0].path, found[0].line) == (f"clusters.main.gateway.tls{field}", 6)
    assert why in found[0].message
    assert fix in str(found[0].fix)


@pytest.mark.parametrize(
    ("tls", "field", "why"),
    [
        ("{}", ".certificateAuthority", "missing"),
        ("{certificateAuthority: {}}", ".certificateAuthority", "exactly one of `configMap` and `secret`"),
        ("{certificateAuthority: {configMap: a, secret: b}}", ".certificateAuthority", "exactly one of"),
    ],
)
def test_wrong_serve_tls_is_refused(tls: str, field: str, why: str) -> None:
    (problem,) = problems(SMALL + f"clusters: {{main: {{serveTls: {tls}}}}}\n")
    assert (problem.path, problem.line) == (f"clusters.main.serveTls{field}", 6)
    assert why in problem.message
    assert problem.fix


def test_service_account_without_namespace_is_refused() -> None:
    problem = the_problem(SMALL + "tenants: {a: {access: {deployers: {serviceAccounts: [deployer]}}}}\n")
    assert str(problem.fix) == "serviceAccounts: [pipelines/deployer]   # namespace/name"


CUSTOM = """\
fleet: custom
pools: {gpu: {gpu: L4-24GB, nodes: 1}}
models:
  ocr:
    source: Qwen/Qwen3-8B
    task: custom
    application: {importPath: 'mymodels.ocr:build_app', deployment: Ocr%s}
tenants: {a: {models: [ocr]}}
"""


def test_custom_application_without_paths_is_refused() -> None:
    problem = the_problem(CUSTOM % "")
    assert (problem.path, problem.line) == ("models.ocr.application", 7)
    assert str(problem.fix) == "paths: {/v1/ocr: POST}"
    assert read(CUSTOM % ", paths: {/v1/ocr: POST}").models["ocr"].application


@pytest.mark.parametrize("path", ["/v1/../ocr", "//ocr", "v1/ocr", "/v1/%2e"])
def test_application_path_with_special_characters_is_refused(path: str) -> None:
    assert "not a path" in the_problem(CUSTOM % f", paths: {{'{path}': POST}}").message


def test_problems_of_all_tenants_are_reported_together() -> None:
    found = problems(SMALL + "tenants:\n  a: {models: [chap]}\n  b: {models: [chat, chat]}\n")
    assert [problem.line for problem in found] == [7, 8]


# -- the plan ----------------------------------------------------------------------------------------------------------


def test_cluster_has_a_gateway_when_tenants_may_call_a_model() -> None:
    found = plan_small("tenants: {a: {models: [chat]}, b: {}}\n").gateways
    assert {name: (gateway.models, gateway.tenants, gateway.url) for name, gateway in found.items()} == {
        "main": (("chat",), ("a",), "http://gateway.gateway")
    }
    assert not plan_small("tenants: {a: {}}\n").gateways


def test_gateway_url_is_its_host() -> None:
    cluster = (
        "clusters: {main: {gateway: {host: ai.example.com, ingress: {tlsSecret: tls}, allowedClients: [nginx]}}}\n"
    )
    (gateway,) = plan_small(cluster + "tenants: {a: {models: [chat]}}\n").gateways.values()
    assert gateway.url == "https://ai.example.com"


@pytest.mark.parametrize(
    ("more", "warning"),
    [
        ("", "the fleet has no `tenants`, so no gateway is rendered"),
        ("tenants: {a: {}}\n", "no tenant lists `chat`"),
        (
            "tenants: {a: {models: [chat], gpus: 1}}\n",
            "tenant `a` owns no service, so it gets no namespace and `gpus`",
        ),
        ("tenants: {a: {models: [chat], access: {editors: {groups: [a]}}}}\n", "and `access` have no effect"),
        (
            "tenants: {a: {models: [chat]}}\nservices: {chat: {aliases: {namespace: apps, names: [llm]}}}\n",
            "pods of namespace `apps` can call service `chat` by its aliases, without the gateway",
        ),
        ("tenants: {a: {models: [chat]}}\n", "no client can reach the gateway of cluster `main`"),
    ],
)
def test_plan_warns_of_open_and_unreachable_services(more: str, warning: str) -> None:
    assert any(warning in message for message in plan_small(more).warnings)


@pytest.mark.parametrize(
    ("model", "tenants", "warning"),
    [
        ("", "{a: {models: [chat]}}", "at most one tenant may call the model"),
        (
            "task: transcribe, ",
            "{a: {models: [chat]}, b: {models: [chat]}}",
            "divides no prefix cache of task `transcribe` by tenant",
        ),
        ("", "{a: {models: [chat]}, b: {models: [chat]}}", ""),
    ],
)
def test_plan_warns_of_a_prefix_cache_reason_without_effect(model: str, tenants: str, warning: str) -> None:
    source = "openai/whisper-large-v3" if model else "Qwen/Qwen2.5-7B-Instruct"
    text = f"""
fleet: small
pools: {{gpu: {{gpu: L4-24GB, nodes: 2}}}}
models: {{chat: {{source: {source}, context: 448, {model}sharedPrefixCacheReason: all tenants are one team}}}}
tenants: {tenants}
"""
    found = [each for each in plan(text).warnings if "sharedPrefixCacheReason" in each]
    assert bool(found) == bool(warning)
    assert all(warning in each for each in found)


def test_complete_fleet_has_no_warnings() -> None:
    clusters = "clusters: {main: {gateway: {allowedClients: [apps]}}}\n"
    assert (
        plan_small(
            clusters + OWNED + "tenants: {a: {models: [chat], gpus: 1, access: {editors: {groups: [a]}}}}\n"
        ).warnings
        == ()
    )


@pytest.mark.parametrize(
    ("limit", "warning"),
    [
        ("requestsPerMinute: 59", "(`requestsPerMinute`) add up to 59"),
        ("concurrency: 1", "(`concurrency`) add up to 1"),
        ("requestsPerMinute: 60", ""),
    ],
)
def test_plan_warns_of_limits_below_the_planned_load(limit: str, warning: str) -> None:
    text = SMALL.replace("4096", "4096, traffic: {requestsPerSecond: 1, inputTokens: 500, outputTokens: 200}")
    clusters = "clusters: {main: {gateway: {allowedClients: [apps]}}}\n"
    warnings = plan(text + clusters + f"tenants: {{a: {{models: [chat], {limit}}}}}\n").warnings
    assert [bool(warning) and warning in message for message in warnings] == ([True] if warning else [])
