"""The version of the distribution."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
