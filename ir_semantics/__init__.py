"""The tensor IR: operators, shapes, reference meaning, ONNX import, and the IR as an ILA.

Each operator is one kernel over tensors, interpreted over every domain. This package trusts
``ila_lang`` for the interpretations, and its reading of the ONNX specification. It proves nothing
itself and imports no solver; that an operator's kernel agrees with an independent implementation is
tested (VT1).
"""
