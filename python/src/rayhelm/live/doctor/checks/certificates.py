"""The certificates of cert-manager are issued, and renewed in time."""

from collections.abc import Iterator

from rayhelm.live.cluster.kinds import CERTIFICATES
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object, find_condition, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object

_SOON_S = 14 * 86400


def _find(facts: Facts) -> Iterator[Finding]:
    return find_in_each(facts.get_all(CERTIFICATES, facts.namespaces), lambda item: _find_late(item, facts))


def _find_late(item: Object, facts: Facts) -> Iterator[Finding]:
    name, namespace, status = item["metadata"]["name"], namespace_of(item), item.get("status", {})
    ready = find_condition(item, "Ready")
    left = -facts.age_s(status["notAfter"]) if status.get("notAfter") else None
    is_late = facts.age_s(status.get("renewalTime", "")) > 3600
    if left is not None and left < _SOON_S and (is_late or left < 0):
        yield Finding(
            object=name_object(item),
            evidence=f"expired on {status['notAfter']}"
            if left < 0
            else f"expires on {status['notAfter']}, in"
            f" {left / 86400:.0f} days; the renewal was due on {status.get('renewalTime', '?')}",
            cause="cert-manager did not renew it: the issuer, DNS or the challenge fails",
            severity=None if left < 0 else Severity.warning,
            fix=f"kubectl describe certificate {name} -n {namespace}; cmctl renew {name} -n {namespace}",
        )
    elif ready.get("status") == "False" and facts.age_s(ready.get("lastTransitionTime", "")) > 900:
        yield Finding(
            object=name_object(item),
            evidence=f"Ready is False: {ready.get('reason', '')} {ready.get('message', '')}"[:300],
            cause="cert-manager cannot issue it",
            fix=f"kubectl describe certificate {name} -n {namespace}",
        )


CHECK = Check(
    title="certificates",
    severity=Severity.critical,
    find=_find,
    reads=(CERTIFICATES,),
)
