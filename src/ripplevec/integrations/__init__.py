"""Conversions between models and other libraries: one module per library, imported on demand."""
