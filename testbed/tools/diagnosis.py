"""Cause and fix of a failed Go command, from the end of its output."""

import re

__all__ = ["diagnosis"]

AGAIN = "then run: make tools (it continues)"

KNOWN = (
    (
        r"no space left on device|disk quota exceeded",
        "the disk is full",
        f"free disk space, or set GOCACHE and GOMODCACHE to folders on a larger disk; {AGAIN}",
    ),
    (
        r"checksum mismatch|SECURITY ERROR",
        "the download differs from the version that ci/tools pins",
        "do not use it: contact the operator of your Go module proxy, or set GOPROXY to another one",
    ),
    (
        r"dial tcp|i/o timeout|no such host|connection re(fused|set)|TLS|x509|\b(40[0-9]|50[0-9]) \w+|unexpected EOF",
        "a Go module could not be downloaded",
        f"set GOPROXY (and HTTPS_PROXY, SSL_CERT_FILE) to what this computer can reach; {AGAIN}",
    ),
    (r"signal: killed|cannot allocate memory", "too little memory", f"stop other programs; {AGAIN}"),
    (
        r"updates to go\.mod needed|missing go\.sum entry",
        "go.mod and go.sum do not match",
        "go mod tidy in that folder of ci/tools, and commit the result",
    ),
    (r"^terminated$|signal: (interrupt|terminated)", "it was interrupted", "make tools (it continues)"),
)


def diagnosis(said: str) -> tuple[str, str]:
    """Return cause and fix from the end of Go's output."""
    for pattern, cause, fix in KNOWN:
        if re.search(pattern, said, re.MULTILINE):
            return cause, fix
    return "see Go's output above", "make tools (it continues); run `go clean -cache` first if it fails again"
