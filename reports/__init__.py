"""Certificates of proofs, their store and checker, and reports.

JUnit, SARIF, HTML and plots are written from certificates.  The checker trusts the term printer and the solvers that
it feeds with SMT-LIB text; it shares nothing else with the provers.  It proves a certificate's obligations again, and
refuses it when the semantics of either side have changed.

``subjects`` is the one interface of all that can be claimed; ``certificate`` writes and reads, ``checker`` and
``binding`` check, ``store`` keeps proofs, ``outcomes`` is what reports are written from.
"""
