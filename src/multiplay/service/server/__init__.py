"""The server process: sockets, workers, middleware, logs, metrics."""
