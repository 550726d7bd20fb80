"""Terms over scalars, whose operators have one meaning for all number formats, and their values.

``terms`` is the language and ``operators`` its meaning; ``concrete``, ``intervals`` and ``arrays`` evaluate.
"""
