"""ONNX files, which run in onnxruntime without elmokit: written and described, not loaded."""
