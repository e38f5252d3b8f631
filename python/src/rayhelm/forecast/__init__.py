"""What an edit of a release will do to its RayService.

observed    what KubeRay was seen to do with an edit, as data: what a forecast is held against
"""
