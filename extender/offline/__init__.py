"""Work on a recorded cluster: read what `kubectl get` prints, explain a decision, simulate a queue of them.

It may import everything below `web` that does no I/O: preemption, decide, framework and below. It never talks to a
cluster, never writes a file, and knows neither a command line nor a terminal: it returns values and text.
"""
