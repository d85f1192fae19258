"""The composition root of `extender schedule` and `extender serve`: wiring, informers, HTTP ports, signals, shutdown.

This room may import every room except `cli`. It contains no scheduling logic and no command line flags.
"""
