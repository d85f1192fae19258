"""Analysis of recorded clusters: read the output of `kubectl get`, explain a decision, simulate the queue.

May import `plugins`, `preemption`, `cycle` and below. Reads only files and standard input, and returns values and text.
Does not connect to a cluster, write files, or depend on a command line or terminal.
"""
