"""Options of the commands that read a live cluster."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["ClusterOption", "ContextOption", "KubeconfigOption"]

ContextOption = Annotated[str, typer.Option(help="Context of the kubeconfig; default: the current one.")]
KubeconfigOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Default: $KUBECONFIG, else ~/.kube/config.")
]
ClusterOption = Annotated[str, typer.Option(help="Name of this cluster in the fleet file, if the fleet has several.")]
