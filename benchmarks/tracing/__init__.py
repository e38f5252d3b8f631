"""What traces cost: CPU time per request of one endpoint with and without spans, in alternating rounds."""
