"""Outcomes and certificates for other machines: JUnit, SARIF, in-toto, and texts."""
