"""Implement the plugin VolumeBinding, which finds and binds volumes for the claims of a pod."""
