"""Read a recorded cluster from `kubectl get` output, explain its pending pods, and simulate their scheduling.

The package may import `plugins`, `preemption`, `cycle` and the packages below them. It reads files and standard input,
and returns values and text. It does not connect to a cluster, write files, or depend on a command line or terminal.
"""
