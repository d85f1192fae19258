"""Implement the plugin InterPodAffinity, which filters and scores nodes by the affinity terms of pods."""
