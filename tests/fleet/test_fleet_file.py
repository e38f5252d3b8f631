"""The fleet file: accepted values, and the message for each wrong one."""

import pytest

from rayhelm.errors import Fix
from shared.small_fleet import SMALL, problems, read, the_problem


def test_fleet_with_three_keys_is_accepted() -> None:
    fleet = read(SMALL)
    assert fleet.clusters["main"].kuberay == "1.7.0"
    assert fleet.service_names == ("chat",)


@pytest.mark.parametrize(
    ("text", "seconds"), [("600ms", 0.6), ("1s", 1.0), ("1.5s", 1.5), ("2m", 120.0), ("50us", 5e-5), ("1 s", 1.0)]
)
def test_durations_are_parsed_with_units(text: str, seconds: float) -> None:
    fleet = read(SMALL.replace("context: 4096", f"slo: {{ttft: {text}}}"))
    assert fleet.models["chat"].slo.ttft == pytest.approx(seconds)


@pytest.mark.parametrize(("text", "bits"), [("10Gbit/s", 1e10), ("100Mbit/s", 1e8), ("12.5GB/s", 1e11)])
def test_bandwidths_are_bits_per_second(text: str, bits: float) -> None:
    fleet = read(SMALL + f"networks:\n  lan: {{bandwidth: {text}}}\n")
    assert fleet.networks["lan"].bandwidth == pytest.approx(bits)


def test_memory_is_parsed_with_binary_and_decimal_prefixes() -> None:
    fleet = read(SMALL.replace("nodes: 2", "nodes: 2, memoryPerNode: 80GiB"))
    assert fleet.pools["gpu"].memory_per_node == 80 * 2**30


def test_yaml_yes_and_on_are_text() -> None:
    assert read(SMALL.replace("source: Qwen/Qwen2.5-7B-Instruct", "source: on")).models["chat"].source == "on"


def test_models_with_the_same_service_share_it() -> None:
    text = SMALL.replace("context: 4096}", "service: ai}\n  embed: {source: BAAI/bge-m3, task: embed, service: ai}")
    assert read(text).service_names == ("ai",)
    assert read(text).models_of("ai") == ("chat", "embed")


def test_unknown_key_names_the_nearest_key_and_line() -> None:
    problem = the_problem(SMALL.replace("nodes: 2", "nodes: 2, gpuPerNode: 8"))
    assert (problem.file, problem.line, problem.path) == ("fleet.yaml", 3, "pools.gpu.gpuPerNode")
    assert "did you mean `gpusPerNode`" in problem.message
    assert str(problem.fix) == "gpusPerNode: 8   # instead of `gpuPerNode`"


@pytest.mark.parametrize(
    ("old", "new", "path", "says"),
    [
        ("context: 4096", "slo: {ttft: 600}", "models.chat.slo.ttft", "has no unit; write 600ms or 600s"),
        ("context: 4096", "slo: {ttft: -1s}", "models.chat.slo.ttft", "cannot be negative"),
        ("context: 4096", "slo: {ttft: 1 parsec}", "models.chat.slo.ttft", "is not a duration"),
        ("context: 4096", "slo: {ttft: 0s}", "models.chat.slo.ttft", "more than zero"),
        ("context: 4096", "context: -3", "models.chat.context", "greater than or equal to 16"),
        ("nodes: 2", "nodes: -2", "pools.gpu.nodes", "greater than or equal to 1"),
        ("nodes: 2", "nodes: 1.5", "pools.gpu.nodes", "a whole number"),
        ("nodes: 2", "nodes: two", "pools.gpu.nodes", "a whole number"),
        ("source: Qwen/Qwen2.5-7B-Instruct", "source: null", "models.chat.source", "has no value"),
        ("context: 4096", "task: chatt", "models.chat.task", "is not one of"),
        ("context: 4096", "revision: main", "models.chat.revision", "is not a commit"),
        ("chat:", "Chat A:", "models.Chat A", "cannot be a name"),
        ("chat:", "n:", "models.n", "YAML reads it as true, false or null"),
        ("fleet: small", f"fleet: {'x' * 48}", "fleet", "KubeRay allows 47"),
        ("nodes: 2", "nodes: 2, cluster: edge", "pools.gpu.cluster", "there is no cluster `edge`"),
        ("context: 4096", "pool: gpus", "models.chat.pool", "there is no pool `gpus`"),
        (
            "context: 4096",
            "engine: {allowed_local_media_path: /}",
            "models.chat.engine.allowed_local_media_path",
            "read files of the worker",
        ),
        ("context: 4096", "engine: {trust_remote_code: true}", "models.chat.engine.trust_remote_code", "code from"),
        ("gpu: L4-24GB, nodes: 2", "nodes: 2", "pools.gpu", "needs `gpu` and `nodes`, or `hosts`"),
        ("nodes: 2", "nodes: 2, hosts: [{gpu: L4-24GB}]", "pools.gpu.gpu", "or `hosts`"),
        ("source: Qwen/Qwen2.5-7B-Instruct, ", "", "models.chat.source", "is missing"),
        ("fleet: small", "fleet: !!int foo", "fleet", "`foo` is no int"),
        ("fleet: small", "fleet: !!bool foo", "fleet", "`foo` is no bool"),
        ("fleet: small", "fleet: 5", "fleet", "YAML does not read `5` as a string"),
        ("nodes: 2", f"nodes: {'9' * 5000}", "pools.gpu.nodes", "larger than any number"),
        ("nodes: 2", "nodes: true", "pools.gpu.nodes", "a whole number, not `true`"),
        ("nodes: 2", 'nodes: "2"', "pools.gpu.nodes", "a whole number"),
        ("nodes: 2", "nodes: 2, cpusPerNode: 1e999", "pools.gpu.cpusPerNode", "larger than any number"),
        ("nodes: 2", "nodes: 2, cpusPerNode: .inf", "pools.gpu.cpusPerNode", "must be a number, not `.inf`"),
        ("nodes: 2", "nodes: 2, cpusPerNode: true", "pools.gpu.cpusPerNode", "must be a number"),
        ("nodes: 2", f"nodes: 2, memoryPerNode: {'9' * 400}TiB", "pools.gpu.memoryPerNode", "more than 1024TiB"),
        ("nodes: 2", "nodes: 2, memoryPerNode: 2000TiB", "pools.gpu.memoryPerNode", "more than 1024TiB"),
        ("context: 4096", "slo: {ttft: 25h}", "models.chat.slo.ttft", "more than 24h"),
        ("nodes: 2", "nodes: 2, price: -1 USD/h", "pools.gpu.price", "cannot be negative"),
        ("context: 4096", "replicas: {min: 5, max: 2}", "models.chat.replicas", "`min` is 5 and `max` is 2"),
        ("context: 4096", "replicas: {min: 5}", "models.chat.replicas", "`min` is 5 and `max` is 1"),
        ("context: 4096", "replicas: true", "models.chat.replicas", "a whole number, not `true`"),
        ("context: 4096", "replicas: {mim: 5}", "models.chat.replicas.mim", "unknown key"),
        ("context: 4096", "gpuFraction: 0.01", "models.chat.gpuFraction", "greater than or equal to 0.05"),
        (
            "context: 4096",
            "parallelism: {pipeline: 3, layers: [14, 14]}",
            "models.chat.parallelism",
            "`layers` has 2 stages, and `pipeline` is 3",
        ),
        ("context: 4096", "parallelism: {layers: 28}", "models.chat.parallelism.layers", "must be a list"),
        ("nodes: 2", "nodes: 2, nodeSelector: {a b: c}", "pools.gpu.nodeSelector.a b", "key of a label"),
        ("nodes: 2", "nodes: 2, nodeSelector: {A.b/c/d: e}", "pools.gpu.nodeSelector.A.b/c/d", "key of a label"),
        ("nodes: 2", "nodes: 2, nodeSelector: {a: -b}", "pools.gpu.nodeSelector.a", "value of a label"),
        ("nodes: 2", f"nodes: 2, nodeSelector: {{a: {'b' * 64}}}", "pools.gpu.nodeSelector.a", "value of a label"),
        (
            "nodes: 2",
            "nodes: 2, nodeSelector: {a: true}",
            "pools.gpu.nodeSelector.a",
            "YAML does not read `true` as a string",
        ),
        ("nodes: 2", "nodes: 2, rdmaResource: hca", "pools.gpu.rdmaResource", "not the name of an extended resource"),
        (
            "nodes: 2",
            "nodes: 2, tolerations: [{key: a, value: b}]",
            "pools.gpu.tolerations[0]",
            "operator `Exists` takes no `value`",
        ),
        (
            "nodes: 2",
            "nodes: 2, tolerations: [{key: a, operator: Equal}]",
            "pools.gpu.tolerations[0]",
            "operator `Equal` needs `value`",
        ),
        ("nodes: 2", "nodes: 2, image: {repository: a/b}", "pools.gpu.image", "neither `tag` nor `digest`"),
        (
            "nodes: 2",
            "nodes: 2, image: {repository: a/b, tag: latest}",
            "pools.gpu.image.tag",
            "the content of tag `latest` changes",
        ),
        ("nodes: 2", 'nodes: 2, image: {repository: "a/b:1"}', "pools.gpu.image.repository", "has a tag"),
        (
            "nodes: 2",
            "nodes: 2, image: {repository: A B, tag: a}",
            "pools.gpu.image.repository",
            "not an image repository",
        ),
        ("nodes: 2", "nodes: 2, image: {repository: a/b, tag: 2.60}", "pools.gpu.image.tag", "YAML does not read"),
    ],
)
def test_wrong_value_is_reported_with_path_and_line(old: str, new: str, path: str, says: str) -> None:
    assert old in SMALL
    problem = the_problem(SMALL.replace(old, new, 1))
    assert problem.path == path
    assert says in problem.message
    assert problem.line
    assert problem.fix


def test_price_zero_is_accepted() -> None:
    assert read(SMALL.replace("nodes: 2", "nodes: 2, price: 0 USD/h")).pools["gpu"].price == 0


def test_valid_labels_images_and_tolerations_are_accepted() -> None:
    pool = read(
        SMALL.replace(
            "nodes: 2",
            "nodes: 2, nodeSelector: {kubernetes.io/hostname: a-1, x: ''}, tolerations: [{key: a/b}, {key: a,"
            " operator: Equal, value: b}], image: {repository: 'reg.example:5000/team/ray', tag: 2.60.0-py312}",
        )
    ).pools["gpu"]
    assert pool.node_selector["kubernetes.io/hostname"] == "a-1"
    assert pool.image
    assert pool.image.repository == "reg.example:5000/team/ray"


def test_alias_used_twice_is_refused() -> None:
    twice = "services: {chat: {aliases: {namespace: ai, names: [a, a]}}}\n"
    assert "listed twice" in the_problem(SMALL + twice).message
    both = (
        SMALL
        + "  two: {source: x/y}\n"
        + ("services: {chat: {aliases: {namespace: ai, names: [a]}}, two: {aliases: {namespace: ai, names: [b, a]}}}\n")
    )
    problem = the_problem(both)
    assert problem.path == "services.two.aliases.names[1]"
    assert "service `chat` already has the alias `a`" in problem.message
    assert read(both.replace("two: {aliases: {namespace: ai", "two: {aliases: {namespace: other"))


@pytest.mark.parametrize("namespace", ["gateway", "infra"])
def test_alias_with_the_name_of_the_gateways_service_is_refused(namespace: str) -> None:
    cluster = f"clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}, gateway: {{namespace: {namespace}}}}}}}\n"
    alias = f"services: {{chat: {{aliases: {{namespace: {namespace}, names: [other, gateway]}}}}}}\n"
    problem = the_problem(SMALL + cluster + alias)
    assert problem.path == "services.chat.aliases.names[1]"
    assert f"`gateway` is the Service of the gateway in namespace `{namespace}`" in problem.message
    assert read(SMALL + cluster + alias.replace(f"namespace: {namespace}", "namespace: ai"))


def test_worker_group_name_above_63_characters_is_refused() -> None:
    pool, host = "p" * 47, "h" * 47
    text = SMALL.replace("gpu: {gpu: L4-24GB, nodes: 2}", f"{pool}: {{hosts: [{{gpu: L4-24GB, name: {host}}}]}}")
    problem = the_problem(text)
    assert problem.path == f"pools.{pool}.hosts[0]"
    assert "Kubernetes allows 63" in problem.message
    assert read(text.replace(host, "h" * 12))


def test_name_in_other_scripts_is_not_its_own_fix() -> None:
    assert str(the_problem(SMALL.replace("chat:", "模型:")).fix).startswith("my-name: {source: ")
    assert str(the_problem(SMALL.replace("chat:", "Modèle 7:")).fix).startswith("Mod-le-7: {source: ")


def test_fix_is_yaml_with_a_value() -> None:
    clusters = "clusters: {main: {apiServer: {cidrs: 10.0.0.1/32}}}\n"
    assert str(the_problem(SMALL + clusters).fix) == "cidrs: [10.0.0.1/32]"
    assert str(the_problem(SMALL.replace("nodes: 2", "nodes: two")).fix).startswith("nodes: 4   # ")


@pytest.mark.parametrize(
    ("node", "reserved", "key"),
    [("cpusPerNode: 8", "cpus: 8", "cpus"), ("memoryPerNode: 64GiB", "memory: 80GiB", "memory")],
)
def test_daemon_sets_that_take_the_whole_node_are_refused(node: str, reserved: str, key: str) -> None:
    found = the_problem(SMALL.replace("nodes: 2", f"nodes: 2, {node}, daemonSets: {{{reserved}}}"))
    assert found.path == f"pools.gpu.daemonSets.{key}"
    assert isinstance(found.fix, Fix)
    assert found.fix.is_removal


def test_problems_are_reported_together_by_line() -> None:
    found = problems(SMALL.replace("nodes: 2", "nodes: 0").replace("context: 4096", "contxt: 4096"))
    assert [problem.line for problem in found] == [3, 5]


def test_name_above_47_characters_is_refused() -> None:
    problem = the_problem(SMALL.replace("gpu: {gpu", f"{'c' * 48}: {{gpu"))
    assert "48 characters" in problem.message
    assert str(problem.fix).startswith(f"{'c' * 47}: {{gpu: ")


def test_tenants_with_more_gpus_than_the_pools_are_refused() -> None:
    problem = the_problem(SMALL + "tenants:\n  a: {gpus: 2, models: [chat]}\n  b: {gpus: 1}\n")
    assert "add up to 3 (a 2, b 1), and the pools have 2" in problem.message
    assert problem.line == 6
    assert problem.fix_text.endswith("gpus: 1   # 1 less, as the pools have")


def test_tenant_with_an_unknown_model_is_refused() -> None:
    problem = the_problem(SMALL + "tenants:\n  a: {models: [chap]}\n")
    assert problem.path == "tenants.a.models[0]"
    assert str(problem.fix) == "models: [chat]"


def test_context_below_the_mean_request_is_refused() -> None:
    text = SMALL.replace(
        "context: 4096", "context: 100, traffic: {requestsPerSecond: 1, inputTokens: 90, outputTokens: 20}"
    )
    assert "prompt and answer have 110 tokens on average" in the_problem(text).message


def test_service_on_two_clusters_is_refused() -> None:
    text = """\
fleet: two
clusters: {main: {}, edge: {}}
pools:
  a: {gpu: L4-24GB, nodes: 1}
  b: {gpu: L4-24GB, nodes: 1, cluster: edge}
models:
  one: {source: x/y, pool: a, service: s}
  two: {source: x/y, pool: b, service: s}
"""
    assert "a RayService is on one" in the_problem(text).message


@pytest.mark.parametrize("key", ["networks", "clusters", "services", "tenants"])
def test_name_that_is_not_of_the_form_of_names_is_refused_in_each_map(key: str) -> None:
    """Also in maps whose example is empty."""
    value = "{bandwidth: 1Gbit/s}" if key == "networks" else "{}"
    problem = the_problem(f"{SMALL}{key}: {{My_Name: {value}}}\n")
    assert problem.path == f"{key}.My_Name"
    assert "cannot be a name" in problem.message


def test_fix_of_an_unknown_key_has_only_keys_that_take_its_value() -> None:
    problem = the_problem(SMALL + "service: {chat: {upgrade: None}}\n")
    assert problem.fix_text.startswith("services: {chat: ")
    assert not problem.alternatives
