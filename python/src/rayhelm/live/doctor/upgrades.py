"""Commands that change a value of a release of another project's chart."""

__all__ = ["describe_upgrade"]


def describe_upgrade(release: str, chart: str, namespace: str, *settings: str) -> str:
    """Return the command that sets values in the installed version of the chart and keeps all others. Without the
    version Helm installs the newest one. Values that the chart got since then have their defaults."""
    version = f"$(helm get metadata {release} -n {namespace} | sed -n 's/^VERSION: //p')"
    changed = " ".join(f"--set {setting}" for setting in settings)
    return f'helm upgrade {release} {chart} -n {namespace} --version "{version}" --reset-then-reuse-values {changed}'
