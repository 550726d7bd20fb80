"""``python -m benchmarks.sums`` measures; ``--help`` has the options."""

import sys

from .measure import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
