"""The kernel: replays derivations of tensor rules, and knows nothing of how they were found.

A derivation is a list of equations between elements, each under hypotheses on indices and each an instance of a law.
``steps`` has its form, ``forms`` the sums of products and sets of candidates that laws speak of, ``laws`` the laws, and
``replay`` what a derivation proves.  Only the term language and the printer of obligations are imported.
"""
