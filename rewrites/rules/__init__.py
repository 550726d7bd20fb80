"""The rewrite rules, as data, and tables of them."""
