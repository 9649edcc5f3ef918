"""The server: connections, worker processes, middleware, logs, metrics."""
