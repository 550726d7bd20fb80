"""The operators of TOSA, in the forms of MLIR 19 (attributes) and of MLIR 20 and later (operands).

Source: the TOSA specification 1.0, and the MLIR documentation of the dialect.  Where these leave a choice, or lowerings
to linalg take another one, the claim says what is taken.
"""
