"""Plugins for extender that know about GPUs."""
