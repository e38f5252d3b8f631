"""The page docs/explanation/isolation.md, from ci/isolation.yaml: what one tenant can try against another."""

from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from reference_metrics import cell

__all__ = ["IsolationPart", "isolation_page", "load_isolation"]

FILE = Path(__file__).with_name("isolation.yaml")
INTRO = """\
What a tenant can try against another tenant of the same cluster, what stops it, and the tests that show it. The
tenant is a client with a valid key, a member with one of the roles of chart `tenant`, or code in a Ray worker.
[SECURITY.md](../../SECURITY.md) says who is trusted with what. The rows hold for namespaces of chart `tenant`, with
the policies of chart `platform` on `Deny` and a network plugin that enforces NetworkPolicies.

Tests in `tests/cluster` use a real API server with the real KubeRay operator, tests in `tests/live` real pods and
packets, tests in `tests/network` an analyzer of the rendered NetworkPolicies. `test_second_round.py` has [252
attempts](../../tests/attacks/README.md#second-round), one row each.
"""
NOTES = """\
## DNS

Every pod may query the cluster's DNS, and a resolver that forwards queries carries data out of the cluster in their
names. `networkPolicy.dns` of the charts `ray-service` and `tenant` selects the resolver: pods by `peer`, addresses by
`cidrs`. To allow only some names, run a resolver that answers only these (for CoreDNS: `forward` blocks for the
allowed zones, no block for `.`), name it there, and have the nodes of the tenants use it (`clusterDNS` of the
kubelet). Workers need names of the cluster only; the pod that downloads weights needs the names of the hub. This was
not run.

## Users of Redis

With `username` in the fleet file, the Ray head uses its own user of Redis. These rights are enough for the head, and
for the Job of KubeRay that empties Redis after an uninstall (Redis 7.0, Ray 2.60):

```
user NAME on >PASSWORD ~RAY* ~DUMMY +@hash +@connection +info +del +scan
```

KubeRay chooses the keys by the UID of the RayCluster, so a rule cannot name those of one owner: `~RAY*` allows the keys
of all. Such users keep out clients without a password, and do not separate owners: each owner needs its own Redis.

## The operator's namespace

The Ray dashboard accepts connections from the operator's pods only: `networkPolicy.operator` of chart `ray-service`
has their namespace and the label that KubeRay's chart gives them, `app.kubernetes.io/component: kuberay-operator`. Its
value `nameOverride` does not change this label; `componentOverride` does, and then `podLabels` needs the same value.
[`rayhelm doctor`](../reference/doctor.md) reports an operator that the rules do not select. A user who may create pods
in that namespace can give a pod these labels, and with the token of a Ray cluster run jobs on it. So only cluster
administrators may create pods and read Secrets there.

## Encryption

Traffic between the gateway and the Serve port is not encrypted by the charts, and neither is Ray's own traffic. A
node that reads packets of others reads prompts. A mesh or the encryption of the network plugin (WireGuard in Cilium
and Calico) protects both without a value of the charts. It was not run.

The charts have no value for TLS on the Serve port. Ray Serve 2.60 has options for it (`ssl_keyfile`, `ssl_certfile`),
but the readiness probe that KubeRay adds to workers calls plain `http://localhost:8000`, and so do the gateway and
`helm test`.
"""


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    attempt: str
    stopped_by: str
    tests: list[str]
    limit: str = ""


class IsolationPart(BaseModel):
    """A table of the page."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    rows: list[_Row]


def load_isolation() -> list[IsolationPart]:
    """Return the tables of the page."""
    parts = TypeAdapter(dict[str, IsolationPart]).validate_python(yaml.safe_load(FILE.read_text()))
    return list(parts.values())


def isolation_page() -> str:
    """Return the page: one table for each part."""
    lines = ["# Isolation of tenants", "", INTRO]
    for part in load_isolation():
        lines += [
            f"## {part.title}",
            "",
            "| a tenant tries to | stopped by | what is left | tests |",
            "|---|---|---|---|",
        ]
        for row in part.rows:
            tests = "<br>".join(f"[`{name.partition('::')[2]}`](../../{name.partition('::')[0]})" for name in row.tests)
            attempt = row.attempt[0].lower() + row.attempt[1:]
            lines.append(f"| {cell(attempt)} | {cell(row.stopped_by)} | {cell(row.limit)} | {tests or 'none'} |")
        lines.append("")
    return "\n".join([*lines, NOTES])
