"""NodeResourcesFit: the plugin, its scoring strategies, and the events that undo its refusals."""
