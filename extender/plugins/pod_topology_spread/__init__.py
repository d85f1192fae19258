"""Implement the plugin PodTopologySpread, which spreads the pods that match a selector over topology domains."""
