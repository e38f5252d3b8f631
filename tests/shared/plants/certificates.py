"""Faults that the check `certificates` finds."""

from shared.plant import Plant

PLANTS = (
    Plant(
        "A certificate was not renewed",
        "expired on 2026-01-01T00:00:00Z",
        "Certificate gateway/planted",
        create=(
            {
                "apiVersion": "cert-manager.io/v1",
                "kind": "Certificate",
                "metadata": {"name": "planted", "namespace": "gateway"},
                "spec": {"secretName": "ai-tls", "issuerRef": {"name": "ca"}},
                "status": {"notAfter": "2026-01-01T00:00:00Z", "renewalTime": "2025-12-01T00:00:00Z"},
            },
        ),
        is_only_recorded=True,
    ),
)
