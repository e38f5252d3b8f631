"""What Go's last words mean, and what to do about it."""

import re

__all__ = ["diagnosis"]

AGAIN = "then: make tools (it goes on where it was)"

KNOWN = (
    (
        r"no space left on device|disk quota exceeded",
        "the disk is full",
        f"free some, or point GOCACHE and GOMODCACHE to a larger disk; {AGAIN}",
    ),
    (
        r"checksum mismatch|SECURITY ERROR",
        "what was downloaded is not what ci/tools pins",
        "do not go on with it: ask the operator of your Go module proxy, or set GOPROXY to another one",
    ),
    (
        r"dial tcp|i/o timeout|no such host|connection re(fused|set)|TLS|x509|\b(40[0-9]|50[0-9]) \w+|unexpected EOF",
        "a Go module could not be downloaded",
        f"set GOPROXY (and HTTPS_PROXY, SSL_CERT_FILE) to what this computer can reach; {AGAIN}",
    ),
    (r"signal: killed|cannot allocate memory", "too little memory", f"end other programs; {AGAIN}"),
    (
        r"updates to go\.mod needed|missing go\.sum entry",
        "go.mod and go.sum do not fit together",
        "go mod tidy in that folder of ci/tools, and commit the result",
    ),
    (r"^terminated$|signal: (interrupt|terminated)", "it was interrupted", "make tools (it goes on where it was)"),
)


def diagnosis(said: str) -> tuple[str, str]:
    """Return the cause and fix, as far as the end of Go's output shows them."""
    for pattern, cause, fix in KNOWN:
        if re.search(pattern, said, re.MULTILINE):
            return cause, fix
    return "Go's own words are above", "make tools (it goes on where it was); `go clean -cache` if it ends the same way"
