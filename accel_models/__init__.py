"""The accelerators, one package each: ILA, numerics, data layouts and program files.

A model is trusted to describe the hardware at its software-visible interface; that the RTL behaves
as the model says (VT3) is outside this product. The package trusts ``ila_lang`` for the
interpretations, proves nothing itself and imports no solver.
"""
