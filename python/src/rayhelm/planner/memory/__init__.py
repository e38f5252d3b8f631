"""Memory of a model on GPUs: weights, activations, KV cache. `rayhelm fit` is this stage alone."""
