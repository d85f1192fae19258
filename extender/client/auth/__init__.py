"""Interpret the credentials of kubeconfig files, and run their exec plugins.

The package may import `client.errors` and `basics`. It never opens a connection.
"""
