"""Images without Docker: layers of files in an OCI layout, made by umoci, and read by whoever reads OCI.

layout    a folder with images that share their layers
program   an image of one static program and nothing else
"""

from testbed.images.layout import Layout
from testbed.images.program import of_program

__all__ = ["Layout", "of_program"]
