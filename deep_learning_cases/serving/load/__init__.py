"""The load on a service: when each request starts, how it is sent, and what became of it in a few numbers."""
