"""Models that are compiled: the door for what reads them, how they are kept, and ONNX, which comes in by that door."""
