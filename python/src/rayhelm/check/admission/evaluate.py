"""Evaluate policies with Google's CEL: the same language, regular expressions and types as in the API server.

Objects are evaluated as they are written: no field has a default, and no other admission plugin has changed them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from rayhelm.check.admission.policy import AdmissionPolicy, Object, Validation
from rayhelm.errors import MissingError

__all__ = ["PolicyViolation", "evaluate_policies", "find_namespace", "index_namespaces"]

INPUTS = ("object", "oldObject", "request", "namespaceObject", "variables")
AUTHORIZER = "authorizer."
"""The part of an expression that asks the API server what the requester may do."""
_UNKNOWN: Object = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
MESSAGE = re.compile(r"(?P<rule>[a-z][a-z0-9-]*): (?P<what>.*?)\. Write: (?P<fix>.*)", re.DOTALL)
"""Form of the messages of rayhelm's policies."""


@dataclass(frozen=True)
class PolicyViolation:
    """One violation of a policy by an object."""

    policy: str
    message: str
    """Message of the API server."""
    actions: tuple[str, ...]
    """Actions of the binding: `Deny`, `Warn`, `Audit`."""
    rule: str = ""
    what: str = ""
    fix: str = ""
    fields: tuple[str, ...] = ()
    """Possible paths of the field, the nearest first."""

    @property
    def denies(self) -> bool:
        return "Deny" in self.actions


def evaluate_policies(
    policies: Iterable[AdmissionPolicy],
    item: Object | None,
    namespace: Object,
    old: Object | None = None,
    *,
    by_tenant: bool = True,
) -> list[PolicyViolation]:
    """Return the violations when the object is created, when `old` is changed to it, or when `old` is deleted.

    `by_tenant`: the requester is a member of a tenant, not an administrator or a controller."""
    operation = "CREATE" if not old else "UPDATE" if item else "DELETE"
    judged = item or old
    if not judged:
        return []
    data: dict[str, Any] = {
        "object": _drop_nulls(item),
        "oldObject": _drop_nulls(old),
        "request": {"operation": operation},
        "namespaceObject": namespace,
    }
    return [
        violation
        for policy in policies
        if policy.matches(judged, namespace, operation)
        for violation in _find_violations(policy, dict(data), by_tenant=by_tenant)
    ]


def _drop_nulls(value: Any) -> Any:
    """Return the object without fields that are null, as the API server reads it."""
    if isinstance(value, Mapping):
        return {key: _drop_nulls(each) for key, each in value.items() if each is not None}
    return [_drop_nulls(each) for each in value] if isinstance(value, list) else value


def index_namespaces(objects: Iterable[Object]) -> Mapping[str, Object]:
    """Return the Namespaces in `objects` by name."""
    return {item["metadata"]["name"]: item for item in objects if item and item["kind"] == "Namespace"}


def find_namespace(item: Object, known: Mapping[str, Object]) -> Object:
    """Return the namespace of an object. If it is not in `known`, the result has only a name and a Pod Security level,
    because the cluster alone knows the labels."""
    name = str(item["metadata"].get("namespace") or "default")
    found = known.get(name, _UNKNOWN)["metadata"]
    labels = {**(found.get("labels") or {}), "kubernetes.io/metadata.name": name}
    return {"metadata": {**found, "name": name, "labels": labels}}


def _find_violations(policy: AdmissionPolicy, data: dict[str, Any], *, by_tenant: bool) -> Iterator[PolicyViolation]:
    data["variables"] = {}
    try:
        if not all(_compute_value(condition, data) for condition in policy.conditions):
            return
    except _EvaluationError as error:
        yield _report_unreadable(policy, error)
        return
    for name, expression in policy.variables:
        if AUTHORIZER in expression:
            data["variables"][name] = by_tenant
            continue
        try:
            data["variables"][name] = _compute_value(expression, data)
        except _EvaluationError:
            # CEL evaluates a variable only when an expression reads it, so its error belongs to that expression.
            data["variables"].pop(name, None)
    for validation in policy.validations:
        try:
            if _compute_value(validation.expression, data) is not True:
                yield _parse_violation(policy, _build_message(validation, data))
        except _EvaluationError as error:
            yield _report_unreadable(policy, error)


def _build_message(validation: Validation, data: Mapping[str, Any]) -> str:
    if not validation.message_expression:
        return validation.message
    try:
        return str(_compute_value(validation.message_expression, data))
    except _EvaluationError:
        return validation.message


def _parse_violation(policy: AdmissionPolicy, message: str) -> PolicyViolation:
    found = MESSAGE.fullmatch(message)
    if not found:
        return PolicyViolation(policy.name, message, policy.actions)
    rule, what, fix = found["rule"], found["what"], found["fix"]
    return PolicyViolation(policy.name, message, policy.actions, rule, what, fix, policy.fields.get(rule, ()))


def _report_unreadable(policy: AdmissionPolicy, error: "_EvaluationError") -> PolicyViolation:
    """Return the violation by an object whose form the policy cannot read, such as a text where a list belongs."""
    message = (
        f"the object does not have the form that policy {policy.name} reads, so the API server refuses it; CEL: {error}"
    )
    fix = "kubectl apply --dry-run=server -f FILE   # names the field with a wrong type"
    return PolicyViolation(policy.name, str(error), policy.actions, what=message, fix=fix)


class _EvaluationError(Exception):
    """An expression that cannot be evaluated."""


def _compute_value(expression: str, data: Mapping[str, Any]) -> Any:
    from cel_expr_python import cel

    try:
        answer = _compile(expression).eval(data=data)
    except RuntimeError as error:
        raise _EvaluationError(f"{expression}: {error}") from None
    if answer.type() == cel.Type.ERROR:
        raise _EvaluationError(f"{expression}: {answer.value()}")
    return answer.plain_value()


@cache
def _compile(expression: str) -> Any:
    return _create_environment().compile(expression)


@cache
def _create_environment() -> Any:
    try:
        from cel_expr_python import cel
        from cel_expr_python.ext.ext_strings import ExtStrings
    except ImportError:
        raise MissingError(
            "cel-expr-python is not installed; it is needed to evaluate admission policies",
            "pip install cel-expr-python",
        ) from None
    return cel.NewEnv(variables=dict.fromkeys(INPUTS, cel.Type.DYN), extensions=[ExtStrings()])
