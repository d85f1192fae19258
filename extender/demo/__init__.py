"""The demo: a fake API server, the standalone scheduler, and a live view of both.

`scenario` builds the scenario, `timeline` records the changes in the API server, `screen` renders them, `runner` runs
all parts in one event loop. The scheduler is the one of `extender schedule`; it accesses the API server only over HTTP.

This room may import every room except `cli`. It makes no scheduling decision.
"""
