"""The contract between the engine and plugins: what a plugin may be asked, what it may answer, and what follows.

May import `cluster`, `config`, `objects` and `basics`. Knows no plugin; `registry` is handed the catalogue. `runner` is the only caller of plugin code.
"""
