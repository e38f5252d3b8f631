"""Types of the fields that rayhelm reads, by kind."""
