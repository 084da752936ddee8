"""``python -m benchmarks [NAME ...]``: every side-by-side measurement, one after the other, each in a fresh process."""

import argparse
import subprocess
import sys
from pathlib import Path

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", choices=[*NAMES, []], help=f"of {', '.join(NAMES)} (all)")
    failed = []
    for name in parser.parse_args().names or NAMES:
        print(f"\n== {name}", flush=True)
        # One at a time: two measurements at once would measure each other.
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nnot as promised, or stopped: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
