"""InterPodAffinity: the plugin, its filter rules, and counts of matched terms by topology domain."""
