"""The command line: one module per command, and shared modules for flags, options and help texts.

This room may import every room. It contains no scheduling logic: it reads input, calls `app`, `analysis` or `demo`,
prints text and returns exit statuses. Only `cli` and `demo` write to standard output.
"""
