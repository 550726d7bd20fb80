"""The methods of this distribution, which come in by the same door as others; each depends on its own prover alone.

Their modules load provers when something is to be proved: help and a wrong command line need none.
"""
