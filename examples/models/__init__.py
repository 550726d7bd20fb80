"""The six applications of the D2A/3LA paper (section 4.2, appendix B) as ONNX models with seeded weights.

``python -m examples.models NAME -o FILE`` writes one.  Sizes are the paper's; weights are random, drawn such that
activations keep their size, since the paper's trained weights are not public.
"""
