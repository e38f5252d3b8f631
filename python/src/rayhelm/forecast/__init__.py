"""Forecast what an edit of a release does to its RayService.

differences   which fields of two objects differ
edits         what KubeRay does when a field changes, from observations with the real operator
"""
