"""Speed of a replica: time to first token, time per output token and throughput, with intervals."""
