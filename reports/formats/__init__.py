"""Outcomes and certificates for other machines: JUnit, SARIF, in-toto, and texts.

One module for each: ``junit``, ``sarif``, ``intoto``, ``summary`` (Markdown), ``trust`` (what theorems rest on).
"""
