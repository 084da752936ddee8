"""``python -m grading``: the instructor's command line."""

from grading.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
