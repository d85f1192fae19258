"""VolumeBinding: the plugin, lookup and binding of the pod's claims, capacity scores and queueing hints."""
