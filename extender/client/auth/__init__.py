"""Run the exec plugins of kubeconfig files.

The package may import `client.errors` and `basics`. It never opens a connection.
"""
