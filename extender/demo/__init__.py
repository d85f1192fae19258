"""A cluster that plays itself: the sandbox, the standalone scheduler, and a view of both.

`story` makes the scenario, `chronicle` remembers what the API server shows of it, `screen` draws that, `show` runs
everything in one event loop. The scheduler is the one of `extender schedule`, and knows the cluster over HTTP alone.

It may import all rooms below `cli`. It decides nothing and tells the scheduler nothing.
"""
