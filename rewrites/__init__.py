"""What may take the place of what: mappings and rules, their claims, bounds of errors, and the compiler.

A mapping or rule is a claim, untrusted until it holds a live certificate.  The package trusts the provers
``bmc`` and ``chc`` and the checker in ``reports``.  It proves, for a compiled model, the chain of rule applications
that leads to it, each with its certificate's digest.  ``campaigns`` and ``findings`` are leaves: nothing rests on them.
"""
