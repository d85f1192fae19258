"""The plugin framework: extension points, their arguments and results, and the runner that calls plugins.

May import `dra`, `volumes`, `cache` and below. Imports no built-in plugin: `profile_builder` receives the plugin
registry. Only `plugin_runner` calls plugins.
"""
