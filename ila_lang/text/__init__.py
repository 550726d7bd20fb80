"""Texts of what people wrote: listings, and JSON with digests."""
