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

Tests in `tests/cluster` use a real API server with the real KubeRay operator, tests in `tests/pods` real pods and
packets, tests in `tests/network` an analyzer of the rendered NetworkPolicies. `test_second_round.py` has [307
attempts](../../tests/attacks/README.md#second-and-third-round), one row each.
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

Without further settings, traffic between the gateway and the Serve port is not encrypted, and neither is Ray's own
traffic. A node that reads packets of others reads prompts.

`serveTls` of a cluster encrypts the first: Ray Serve accepts TLS only, and the gateway verifies the certificate of
each service.

```yaml
clusters:
  main:
    serveTls: {certificateAuthority: {configMap: serve-ca}}  # or `secret`, of the gateway; entry ca.crt
```

Each service needs a TLS Secret `<service>-serve-tls` in its namespace, with a certificate for
`<service>-serve-svc.<namespace>.svc.cluster.local`. A Certificate of cert-manager creates and renews it:

```yaml
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: chat-serve-tls, namespace: models}
spec:
  secretName: chat-serve-tls
  dnsNames: [chat-serve-svc.models.svc.cluster.local]
  duration: 8760h
  issuerRef: {kind: ClusterIssuer, name: serve-ca}
```

In values of the charts these are `serve.tls.secretName` of `ray-service`, and `upstreamTls` and `endpoints.*.tls` of
`gateway`. Put both in place together: a gateway without TLS does not reach a service with it, nor one with TLS a
service without it.

* **With a certificate of another authority, or for another name, the gateway sends nothing.** The endpoint counts as
  down, and the log of the pod has `Layer6 invalid response`.
* Ray reads the certificate when a pod starts. A renewed one takes effect in new pods only, so use a long lifetime,
  and restart the service before the certificate expires: any change of its pods, such as an annotation, starts a new
  Ray cluster. With cert-manager 1.18 or newer,
  [`ServeCertificateNotLoaded`](../runbooks/ServeCertificateNotLoaded.md) fires for pods that are older than the
  certificate.
* Every client of the Serve port has to use `https://`, those of `aliases` too. Ray does not verify certificates of
  clients, so this is no mutual TLS.
* KubeRay knows nothing of TLS on this port. The readiness probe that it adds to workers asks
  `http://localhost:<serve>/-/healthz` (`initLivenessAndReadinessProbe` in
  `ray-operator/controllers/ray/common/pod.go`), so the chart renders the same probe with `https`, and KubeRay 1.6.2
  and 1.7.0 add none. They ask the port of the head only if it serves requests (`updateHeadPodServeLabel` in
  `rayservice_controller.go`), which `excludeHeadPodFromServeSvc: true` prevents. The status of Serve is read from the
  dashboard, on port 8265.
* The HTTPRoute that KubeRay creates for `NewClusterWithIncrementalUpgrade` has no TLS to the service, so the chart
  refuses both together.

`tests/serve/test_serve_tls.py` ran this with Ray Serve 2.60 and HAProxy 2.8 on one computer: the rendered
serveConfigV2, the rendered probe, a right and a wrong authority, and a wrong name. It was not run in pods.

Ray's own traffic (gRPC, object store, NCCL, the KV cache between prefill and decode) needs a mesh or the encryption
of the network plugin (WireGuard in Cilium and Calico), which protect the Serve port too, without a value of the
charts. Neither was run.
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
