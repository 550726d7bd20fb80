"""What a proof leaves behind: certificates, their store and checker, and reports made from them.

JUnit, SARIF, HTML and plots are written from certificates. The checker trusts the term printer and
the solvers that it feeds with SMT-LIB text; it shares nothing else with the provers. It proves a
certificate's obligations again, and refuses it when the semantics of either side have changed.
"""
