"""Targets: all that is known of one accelerator each, and the door by which they come in.

``target`` is the door.
"""
