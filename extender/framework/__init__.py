"""Define the extension points with their arguments and results, build profiles, and call plugins.

The package may import `dra`, `volumes`, `cache` and the packages below them. It imports no built-in plugin:
`profile_builder` receives the plugin registry as an argument. Only `plugin_runner` calls plugins.
"""
