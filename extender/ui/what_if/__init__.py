"""The page What if: a question about a changed cluster, asked by a form, and its answer.

The package may import `planning` and the packages below it, and `extender.ui` modules that do not import it. Questions
are answered on a copy of the cluster; nothing is changed.
"""
