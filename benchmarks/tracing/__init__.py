"""What traces cost: requests per second of one endpoint with and without spans, in alternating rounds."""
