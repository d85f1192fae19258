"""InterPodAffinity: the plugin, and the sums over topology domains it keeps for a cycle."""
