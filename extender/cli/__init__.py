"""The command line: one module a command, and what they share.

It may import everything. It never decides anything: it reads input, calls `wiring` and then `offline`, `process` or
`demo`, and writes text; it chooses exit statuses, and nothing else but `demo` writes to standard output.
"""
