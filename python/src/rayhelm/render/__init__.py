"""From a fleet file to the files of a GitOps repository, and the folder that they are written into."""
