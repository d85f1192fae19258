"""Plugins for one node at a time: `decorators` makes plugins of functions, `adapters` calls them for all nodes."""
