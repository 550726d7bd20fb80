"""``python -m benchmarks`` runs every benchmark and writes ``benchmarks/results``."""

import sys

from benchmarks import table3, targets

if __name__ == "__main__":
    sys.exit(targets.main() or table3.main(sys.argv[1:]))
