"""The pages under `/ui/` of the processes, and the watches behind those of `extender ui`.

The package may import `extender.app` modules that do not import it, and the packages below `app`.
"""
