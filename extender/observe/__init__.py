"""What can be seen of the product from outside: metrics of plugins and verbs, in the Prometheus format.

It may import `framework` and below. It never decides anything, and nothing in it may make a decision wait.
"""
