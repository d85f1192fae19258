"""The process around a standalone scheduler: its HTTPS service, metrics, signals, and the order of start and end.

May import everything below the command line. Decides nothing, and knows nothing of flags.
"""
