"""ONNX models as graphs of the tensor IR: import, conformance with the ONNX backend tests, and their table.

``importer`` is the door, ``reading`` reads untrusted files; the other modules convert operators.  Needs the package
``onnx`` (``pip install ilaverify[onnx]``), which is imported when a model is.
"""

from .call import NeedsConstant, Unsupported
from .importer import FIRST_OPSET, LAST_OPSET, import_model
from .reading import read_model

__all__ = ["FIRST_OPSET", "LAST_OPSET", "NeedsConstant", "Unsupported", "import_model", "read_model"]
