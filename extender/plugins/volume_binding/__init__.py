"""VolumeBinding: the plugin, the claims it looks at, its scores, its plan of binding, and the events that undo it.

Imports no other plugin.
"""
