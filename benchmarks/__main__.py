"""``python -m benchmarks`` runs every benchmark and writes ``benchmarks/results``."""

import sys

from benchmarks import digits, networks, proofs, simulators, table2, table3, targets
from benchmarks.record import takes_nothing
from benchmarks.sums import measure as sums

if __name__ == "__main__":
    takes_nothing("benchmarks", __doc__)
    runs = (targets.main, networks.main, proofs.main, simulators.main)
    sys.exit(any(run() for run in runs) or table2.main([]) or sums.main([]) or table3.main([]) or digits.main([]))
