"""A Kubernetes control plane without containers: processes on loopback, in a folder of their own.

tools (programs) ──▶ plan (ports, folder) ──▶ certificates ──▶ components (one process each) ──▶ add-ons (CRDs,
accounts, KubeRay operator, KWOK, the Ray stand-in), which also join a cluster that already exists, such as kind.
"""

from testbed.control_plane.down import down
from testbed.control_plane.home import Home, home
from testbed.control_plane.running import ControlPlane
from testbed.control_plane.up import up

__all__ = ["ControlPlane", "Home", "down", "home", "up"]
