"""The store of models that are in a bucket."""

from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from rayhelm.errors import Fix
from rayhelm.fleet.base import ListOf, Record, Refusal, short
from rayhelm.fleet.names import Name, SecretName
from rayhelm.fleet.redis import Cidr
from rayhelm.fleet.web_url import find_secret_part, split_web_url

__all__ = ["Bucket"]


def _endpoint(text: str) -> str:
    fix = Fix("", "https://s3.example:9000", "scheme, host and port of the store, nothing else")
    url = split_web_url(text)
    if not url or text != f"{url.scheme}://{url.netloc}" or find_secret_part(text):
        raise Refusal(f"`{short(text)}` is not the URL of an S3-compatible store", fix)
    return text


class Bucket(Record):
    """Store of the models whose `source` is a bucket (`s3://`, `gs://`, `azure://` or `abfss://`) with a `revision`.
    Only the download Job connects to it, and servers read the volume."""

    endpoint: Annotated[str, AfterValidator(_endpoint)] | None = Field(
        default=None, examples=["https://s3.example:9000"]
    )
    """URL of an S3-compatible store; default: Amazon S3, Google Cloud Storage for `gs://`, and the host in the URL for
    Azure, which has no `endpoint`."""
    region: str | None = Field(default=None, pattern=r"^[a-z0-9-]+$", max_length=63, examples=["eu-central-1"])
    """Region of the bucket. Amazon S3 needs it."""
    credentials_secret: SecretName | None = None
    """Secret in the namespace of each owner, with the keys `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, for
    temporary credentials, `AWS_SESSION_TOKEN`. For `gs://`: the two parts of an HMAC key. For Azure: the key
    `AZURE_STORAGE_SAS_TOKEN`, a shared access signature that can read."""
    service_account: Name | None = None
    """Service account in the namespace of each owner, which a workload identity binds to a role, for `s3://` only. The
    Job requests the credentials of the role on port 443, so do not set `cidrs` or `namespace`."""
    cidrs: ListOf[Cidr] = ()
    """CIDRs of the store; default: all addresses, because Amazon S3 has no fixed ones."""
    namespace: Name | None = Field(default=None, examples=["object-store"])
    """Namespace of a store in this cluster, instead of `cidrs`."""
    pod_labels: dict[str, str] = Field(default={}, examples=[{"app": "minio"}])
    """Labels of the pods of a store in this cluster."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = Field(default=None, examples=[9000])
    """Port of the store's pods, if it differs from the one in `endpoint`: NetworkPolicies check the port of the pod."""

    @model_validator(mode="after")
    def _check_credentials(self) -> Self:
        if bool(self.credentials_secret) == bool(self.service_account):
            raise Refusal(
                "the download Job needs either `credentialsSecret`, a Secret, or `serviceAccount`, a workload identity",
                Fix.removal("serviceAccount") if self.service_account else Fix("credentialsSecret", "bucket-reader"),
            )
        if self.namespace and self.cidrs:
            raise Refusal(
                "`namespace` is for a store in this cluster, `cidrs` for one outside: keep one", Fix.removal("cidrs")
            )
        if self.namespace and not self.endpoint:
            raise Refusal(
                "`namespace` is for a store in this cluster, which needs its `endpoint`",
                Fix("endpoint", f"http://minio.{self.namespace}:9000"),
            )
        return self

    @property
    def egress_port(self) -> int:
        """Port that the NetworkPolicy allows."""
        url = urlsplit(self.endpoint or "https://s3")
        return self.port or url.port or (80 if url.scheme == "http" else 443)
