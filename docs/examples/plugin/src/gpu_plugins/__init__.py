"""Plugins for extender that schedule pods to GPUs."""
