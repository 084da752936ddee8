"""What runs inside the wall: the standard library and installed packages only, never anything else of the grader."""
