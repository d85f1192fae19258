"""From changes of API objects to the tables, and on to whoever listens, in the words plugins register for.

May import `framework` and below. Decides nothing and waits for nothing; knows a `Listener`, never a queue.
Source: A.11.
"""
