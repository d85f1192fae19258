"""The plugin GpuShare: pods that take a part of one GPU, or whole GPUs, of a node.

It may import what every plugin may import. It never imports another plugin.
"""
