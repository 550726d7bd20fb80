"""The rewrite rules, as data, and tables of them.

``rule_set`` is the form in which they are offered; ``scalar`` and ``tensor`` have ours, ``mlir`` reads and writes
rules.
"""
