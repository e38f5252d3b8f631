"""Salts of vLLM's prefix cache."""

from typing import Literal

from rayhelm.deploy.values.common.base import Values
from rayhelm.deploy.values.gateway.tenants import SecretKey, SecretName

__all__ = ["PrefixCache"]


class Salt(Values):
    """From which the gateway computes the salt of each tenant."""

    secret_name: SecretName | Literal[""] = ""
    """Name of a Secret with a random text, in the gateway's namespace; the pods start once it exists, and are ready
    once its text is not empty. Empty: the salts follow from the names of the tenants, so a client that may reach the
    Serve port without the gateway can compute them."""
    secret_key: SecretKey = "salt"
    """Key in the Secret's data. Another text takes effect when the pods restart; the prefix caches then start empty."""


class PrefixCache(Values):
    """vLLM's prefix cache, for models that several tenants may call."""

    salt: Salt = Salt()
    """From which the gateway computes the salt of each tenant."""
