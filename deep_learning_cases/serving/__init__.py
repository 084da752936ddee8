"""The queue for real: a service over HTTP with dynamic batching, and the load that is sent to it."""
