"""The JSON answers of the commands: their types, their schema version, and the codes of reasons.

The package imports only `basics`. It makes no answers: `analysis`, `planning` and `experiments` do.
"""
