"""What MLIR's operators mean: each in one text, by dialect, as elements that are terms.

``function`` is the door; ``program`` holds what a function does so far, ``values`` and ``memory`` what values and
buffers are.
"""
