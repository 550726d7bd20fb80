"""The mappings and rewrite rules, the gate that admits only proved ones, and the compiler's e-graph.

Extraction and code generation stand here too. A mapping or rule is a claim, trusted by nobody until
it holds a live certificate. The package trusts the provers ``bmc`` and ``chc`` and the checker in
``reports``. It proves, for a compiled model, the chain of rule applications that leads to it, each
with its certificate's digest.
"""
