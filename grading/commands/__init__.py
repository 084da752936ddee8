"""The commands of ``python -m grading``, one file each, and what they print and draw."""
