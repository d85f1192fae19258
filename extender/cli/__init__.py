"""Implement the command line: one module per command, and shared modules for flags, options and help texts.

The package may import every package. It contains no scheduling logic. It reads input, calls the packages
below `cli`, prints text and returns exit statuses. Only `cli` and `demo` write to standard output.
"""
