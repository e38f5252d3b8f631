"""Texts and colors that several dashboards share."""

from rayhelm.observe.dashboard_model import State

__all__ = ["APPLICATION_STATES", "DEPLOYMENT_STATES", "IS_AVAILABLE", "PROXY_STATES", "YES_NO"]

APPLICATION_STATES = (
    State(value=0, text="UNKNOWN", color="text"),
    State(value=1, text="DEPLOY_FAILED", color="red"),
    State(value=2, text="UNHEALTHY", color="red"),
    State(value=3, text="NOT_STARTED", color="text"),
    State(value=4, text="DELETING", color="orange"),
    State(value=5, text="DEPLOYING", color="yellow"),
    State(value=6, text="RUNNING", color="green"),
)
"""`ray_serve_application_status`."""

DEPLOYMENT_STATES = (
    State(value=0, text="UNKNOWN", color="text"),
    State(value=1, text="DEPLOY_FAILED", color="red"),
    State(value=2, text="UNHEALTHY", color="red"),
    State(value=3, text="UPDATING", color="yellow"),
    State(value=4, text="UPSCALING", color="blue"),
    State(value=5, text="DOWNSCALING", color="purple"),
    State(value=6, text="HEALTHY", color="green"),
)
"""`ray_serve_deployment_status`."""

PROXY_STATES = (
    State(value=1, text="STARTING", color="yellow"),
    State(value=2, text="HEALTHY", color="green"),
    State(value=3, text="UNHEALTHY", color="red"),
    State(value=4, text="DRAINING", color="orange"),
    State(value=5, text="DRAINED", color="text"),
)
"""`ray_serve_proxy_status`."""

IS_AVAILABLE = (State(value=0, text="down", color="red"), State(value=1, text="available", color="green"))
YES_NO = (State(value=0, text="no", color="green"), State(value=1, text="yes", color="orange"))
