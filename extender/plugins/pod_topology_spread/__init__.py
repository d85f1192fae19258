"""PodTopologySpread: the plugin, its constraints, which nodes count for them, and the events that undo refusals."""
