"""The OpenAPI document of the gateway."""

from typing import Literal

from rayhelm.deploy.values.common.base import Values

__all__ = ["OpenApi"]


class OpenApi(Values):
    """The OpenAPI document of the operations that the gateway allows: `/openapi.json`, and `/docs` for people. It
    has no names of models."""

    access: Literal["None", "Key", "Public"] = "Key"
    """`Key`: for clients with an API key or a token. `Public`: for everyone who can connect. It then shows the paths of
    `custom` applications to clients without a key, too. `None`: both paths get 404."""
