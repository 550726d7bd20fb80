"""Rules on tensors as rewrites of graphs, and graphs made better by them.

``tensor_rewrites`` is the door; ``patterns`` has rules as patterns, ``definitions`` what operators are by definition.
"""
