"""The command line: one module a command, and what they share.

It may import everything. It never decides anything: it reads input, calls `wiring` and `offline` or `web`, and writes
text; it is the only room that writes to standard output and chooses exit statuses.
"""
