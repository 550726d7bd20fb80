"""``python -m benchmarks`` runs every benchmark and writes ``benchmarks/results``."""

import sys

from benchmarks import table3

if __name__ == "__main__":
    sys.exit(table3.main(sys.argv[1:]))
