"""What was handed in: taken over, rebuilt on the skeleton, and what may be shown of it."""
