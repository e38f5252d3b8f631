"""Images without Docker: layers of files in an OCI layout, made by umoci.

layout    a folder with images that share their layers
tar       a layer, as a stream
program   an image of one static program
base      a small Debian with Python
haproxy   the image of the gateway
redis     the image of Redis, for GCS fault tolerance
python    layers of locked packages, and of rayhelm
"""

from testbed.images.layout import LAYOUTS, Layout
from testbed.images.program import of_program

__all__ = ["LAYOUTS", "Layout", "of_program"]
