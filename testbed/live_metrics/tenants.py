"""Run `rayhelm` with a gateway that has several tenants: `python -m testbed.live_metrics.tenants up ...`.

The gateway of `rayhelm up` has one tenant. Metrics by tenant need several, each with its own limits and API keys.
"""

from collections.abc import Callable
from hashlib import sha256

from rayhelm.cli.app import main
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.run.local import gateway
from rayhelm.run.local.state import EndpointState

__all__ = ["ALONE", "TENANTS", "add_keys"]

ALONE = "alone"
"""Tenant that sends no load."""
TENANTS = ("acme", "search", ALONE)
"""Tenants in addition to that of `rayhelm up`."""


def add_keys(state: EndpointState) -> dict[str, str]:
    """Give each of the tenants a key, and return the keys. The gateway reads the files several times per second."""
    keys = {tenant: gateway.create_key() for tenant in TENANTS}
    for tenant, key in keys.items():
        folder = state.gateway / "keys" / tenant
        folder.mkdir(mode=0o700)
        folder.joinpath("keys").write_text(f"{sha256(key.encode()).hexdigest()} key-1\n")
    return keys


def _with_tenants(build: Callable[..., GatewayValues]) -> Callable[..., GatewayValues]:
    def build_more(*arguments: object) -> GatewayValues:
        values = build(*arguments)
        (only,) = values.tenants.values()
        more = {
            tenant: only.model_copy(update={"keys": only.keys.model_copy(update={"secret_name": tenant})})
            for tenant in TENANTS
        }
        return values.model_copy(update={"tenants": {**values.tenants, **more}})

    return build_more


if __name__ == "__main__":
    gateway.build_values = _with_tenants(gateway.build_values)
    main()
