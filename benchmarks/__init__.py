"""Speed and memory, every figure a ratio to a baseline loop timed in the same run."""
