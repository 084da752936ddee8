"""The latency lab: how long one network takes, from where to where, cold and warm, and with what memory."""
