"""Lemmas on primitives, and the rules by which errors compose.

``codes``, ``activations``, ``machine`` and ``host`` have the lemmas, ``real_rules`` and ``network_rules`` the rules.
"""
