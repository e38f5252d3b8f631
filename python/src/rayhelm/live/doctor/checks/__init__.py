"""The checks, one module each. A module with a `CHECK` is found by itself: nothing lists them."""
