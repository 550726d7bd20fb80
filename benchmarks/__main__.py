"""``python -m benchmarks`` runs every benchmark and writes ``benchmarks/results``."""

import sys

from benchmarks import proofs, simulators, sums, table2, table3, targets

if __name__ == "__main__":
    sys.exit(
        targets.main() or proofs.main() or simulators.main() or table2.main([]) or sums.main([]) or table3.main([])
    )
