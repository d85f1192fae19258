"""Share the event loop among tasks: bound the work of one turn, and iterate over long lists in several turns.

A turn is one iteration of the event loop: it reads the sockets with data and runs the tasks that are due. The package
imports only the standard library.
"""
