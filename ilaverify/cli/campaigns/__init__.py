"""Verbs that search: campaigns on properties and on passes of compilers, and faults put into models."""
