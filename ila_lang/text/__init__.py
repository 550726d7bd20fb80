"""Texts of what people wrote: listings, and JSON with digests.

``listing`` writes for people, ``portable`` JSON; ``files`` reads untrusted files.
"""
