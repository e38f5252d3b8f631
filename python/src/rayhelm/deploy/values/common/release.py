"""Keys that the values of every chart have first."""

from typing import Annotated

from pydantic import Field

from rayhelm.deploy.values.common.base import Values
from rayhelm.deploy.values.common.globals import Globals
from rayhelm.deploy.values.common.labels import Annotations, Labels
from rayhelm.deploy.values.common.objects import ExtraObject

__all__ = ["PodReleaseValues", "ReleaseValues"]


class ReleaseValues(Values):
    """Values of a chart without pods of its own."""

    global_: Annotated[Globals, Field(alias="global")] = Globals()
    """Globals of a parent chart. This chart has no images: it does not use them."""
    common_labels: Labels = {}
    """Labels of every object of the release, in place of labels of the same name elsewhere in the values."""
    common_annotations: Annotations = {}
    """Annotations of every object of the release, in place of annotations of the same name elsewhere in the values."""
    extra_objects: list[ExtraObject] = []
    """Further objects of the release, as they are written, without templates. They get the labels and annotations of
    the release. What gives rights (RBAC, webhooks, namespaces), CRDs and Secrets are refused, and by all charts but
    `argocd` and `platform` objects of other namespaces, of the whole cluster, and `Application` and `Kustomization` of
    Argo CD and Flux."""


class PodReleaseValues(ReleaseValues):
    """Values of a chart with pods."""

    global_: Annotated[Globals, Field(alias="global")] = Globals()
    """Globals of a parent chart: the registry of all images, and its credentials."""
    common_labels: Labels = {}
    """Labels of every object of the release, in place of labels of the same name elsewhere in the values. Pods
    do not get them: `podLabels` has theirs."""
    common_annotations: Annotations = {}
    """Annotations of every object of the release, in place of annotations of the same name elsewhere in the values.
    Pods do not get them: `podAnnotations` has theirs."""
