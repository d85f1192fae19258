"""Collect the metrics of the scheduler and of the extender verbs, and render them in the Prometheus format.

The package may import `framework` and the packages below it. It makes no scheduling decision and never blocks one.
"""
