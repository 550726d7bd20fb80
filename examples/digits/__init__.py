"""Handwritten digits: a small residual network trained on real images, shipped with the images it is judged by.

:mod:`.data` reads the images and makes their split, :mod:`.network` is the network, ``python -m examples.digits.train``
trains it.  The files beside this one are what these wrote: ``digits.npz``, ``digits.onnx``.  README.md says where the
images come from and under which licence.
"""

from .data import Digits, as_input, load

__all__ = ["Digits", "as_input", "load"]
