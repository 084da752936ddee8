"""Data and networks: what is measured, from the digits to the engine that runs a model."""
