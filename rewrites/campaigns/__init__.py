"""Property campaigns: random tests of accelerator mappings against the tensor IR, with statistics of the error.

A campaign proves nothing: it samples.  What it finds is real, because every violation is an example that anyone can
replay.  It trusts the models and their simulator, the reference operators of ``ir_semantics``, and Hypothesis for
drawing and shrinking.
"""
