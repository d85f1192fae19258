"""Metrics in the Prometheus format.

This room may import `framework` and the rooms below it. It makes no scheduling decision and never blocks one.
"""
