"""Work on a recorded cluster: read what `kubectl get` prints, explain a decision, simulate a queue of them.

It may import everything below `web`: decide, framework, cluster, config, objects and basics. It never talks to a
cluster, never writes a file, and knows neither a command line nor a terminal: it returns values and text.
"""
