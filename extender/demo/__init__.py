"""Run `extender demo`: the standalone scheduler on a fake API server, with a live view of both.

`scenario` builds the scenario. `timeline` records the changes in the API server, and `screen` renders them. `runner`
runs all parts in one event loop. The scheduler is that of `extender schedule`. It accesses the API server only over
HTTP.

The package may import `app` and the packages below it. It makes no scheduling decision.
"""
