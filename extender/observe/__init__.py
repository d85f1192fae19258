"""What can be seen of the product from outside: metrics in the Prometheus format, and logs.

It may import `framework` and below. It never decides anything, and nothing in it may make a decision wait.
"""
