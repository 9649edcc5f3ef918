"""The studies of a worker process: study manager, request batching, limits."""
