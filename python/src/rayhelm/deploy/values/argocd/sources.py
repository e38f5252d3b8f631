"""Where values and charts are."""

from typing import Annotated

from pydantic import Field

from rayhelm.deploy.values.common.base import Text, Values

__all__ = ["Charts", "Repository", "Url"]

Url = Annotated[str, Field(pattern=r"^(|[^\s]+)$", max_length=2048)]
"""URL of a Git or Helm repository, or an OCI registry without `oci://`; empty for none."""


class Repository(Values):
    """A Git repository that Argo CD can read."""

    url: Url = ""
    """URL as Argo CD knows it, for example `https://git.example.com/ai/fleets.git`."""
    revision: Text = "main"
    """Branch, tag or commit."""
    path: Annotated[str, Field(pattern=r"^[^\s]*$")] = ""
    """Folder of the fleet in the repository; empty for its root."""


class Charts(Values):
    """A Helm repository, an OCI registry, or a folder of a Git repository."""

    url: Url = ""
    """URL of the Helm repository, OCI registry (without `oci://`) or Git repository. Empty: `repository.url`."""
    path: Annotated[str, Field(pattern=r"^[^\s]*$")] = "charts"
    """Folder with the charts in a Git repository. Empty for a Helm repository or OCI registry."""
    version: Text = ""
    """Version of the charts, or branch, tag or commit of the Git repository. Empty: `repository.revision`."""
