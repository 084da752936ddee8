"""Versions of one network side by side: planned, timed in fresh processes, judged claim by claim, drawn."""
