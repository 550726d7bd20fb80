"""The page for people (``page``), and a campaign's histogram (``plots``)."""
