"""Build and run the processes of `extender schedule` and `extender serve` from flags and configuration.

This is the composition root: wiring, informers, HTTP ports, signals, reloading and shutdown. The package may import
every package below `app`. It contains no scheduling logic and no command line flags.
"""
