"""The page for people, and a campaign's histogram."""
