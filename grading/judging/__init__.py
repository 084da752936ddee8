"""Points and sentences: what an item is worth, which judge it has, and what the judges decide, outside the wall."""
