"""The course itself: masters, the source and the labs made of them, and what a notebook is to a grader."""
