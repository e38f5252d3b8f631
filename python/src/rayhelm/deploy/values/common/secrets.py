"""Secrets by reference to a store."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Values

__all__ = ["ExternalSecret", "SecretName"]

SecretName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
SecretKey = Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)]


class Store(Values):
    """The store that the operator reads."""

    name: SecretName
    """Name of the store."""
    kind: Literal["ClusterSecretStore", "SecretStore"] = "ClusterSecretStore"
    """`SecretStore` is one in the namespace of the Secret."""


class RemoteKey(Values):
    """Source of one key of the Secret."""

    key: Annotated[str, Field(min_length=1)]
    """Name of the entry in the store."""
    property: str = ""
    """Property of the entry, if it has several."""
    version: str = ""
    """Version of the entry; empty for the newest."""


class ExternalSecret(Values):
    """A Secret that the operator creates from a store. It is deleted when it is removed from the values or the release
    is uninstalled."""

    store: Store
    """The store."""
    refresh_interval: Annotated[str, Field(pattern=r"^[0-9]+(s|m|h)$")] = "1h"
    """Time between two reads of the store."""
    type: str = "Opaque"
    """Type of the Secret: `kubernetes.io/dockerconfigjson` for the credentials of a registry, `kubernetes.io/tls` for a
    certificate."""
    keys: Annotated[dict[SecretKey, RemoteKey], Field(min_length=1)]
    """Keys of the Secret, by name: `keys` for API keys, `auth_token` for Ray's token, `token` for a hub's, `tls.crt`
    and `tls.key` for a certificate."""
