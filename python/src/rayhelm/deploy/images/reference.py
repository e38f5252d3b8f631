"""References of container images."""

import re
from dataclasses import dataclass, replace

__all__ = ["ImageReference", "parse_reference"]

_REFERENCE = re.compile(r"(?P<name>[^@]+?)(:(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]*))?(@(?P<digest>sha256:[0-9a-f]{64}))?")


@dataclass(frozen=True, order=True)
class ImageReference:
    """An image by tag, by digest, or by both."""

    repository: str
    """Name as the fleet or a chart spells it: `haproxy`."""
    tag: str = ""
    digest: str = ""
    """Digest that is known; empty if none was read from the registry."""

    @property
    def full_repository(self) -> str:
        """Name with its registry, as containerd completes it: `docker.io/library/haproxy`."""
        first, _, rest = self.repository.partition("/")
        if rest and ("." in first or ":" in first or first == "localhost"):
            return self.repository
        return f"docker.io/{self.repository}" if rest else f"docker.io/library/{self.repository}"

    def move(self, registry: str) -> "ImageReference":
        """Return the copy below a registry, which keeps the name of the first registry, so that no two images get the
        same name. An image that is there stays; without a registry all stay."""
        if not registry or self.full_repository.startswith(f"{registry}/"):
            return self
        return replace(self, repository=f"{registry}/{self.full_repository.replace(':', '-')}")

    def __str__(self) -> str:
        return self.repository + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")


def parse_reference(text: str) -> ImageReference:
    """Parse `repository:tag@digest`; a port belongs to the repository."""
    found = _REFERENCE.fullmatch(text)
    return ImageReference(found["name"], found["tag"] or "", found["digest"] or "") if found else ImageReference(text)
