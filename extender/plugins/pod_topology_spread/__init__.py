"""PodTopologySpread: the plugin, compiled constraints, eligible nodes, counts of matching pods, and queueing hints."""
