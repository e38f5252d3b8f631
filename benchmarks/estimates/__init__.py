"""Our estimates of speed and those of AIConfigurator, on the same measured rows."""
