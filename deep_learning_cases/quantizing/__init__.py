"""The quantization lab: versions of one network, made, run and compared."""
