"""NodeResourcesFit: the plugin, its scoring strategies and its queueing hints."""
