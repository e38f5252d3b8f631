"""Forecast what an edit of a release does to its RayService.

differences   which fields of two objects differ
edits         effect of each field, from observations with the real operator
stored        the form in which KubeRay compares two manifests
validation    what the API server refuses, and what KubeRay reports as invalid
service       what happens to a RayService
serve_config  what Ray Serve restarts
"""
