"""The Policy documents of releases up to 1.22, and the configuration of today that decides the same.

May import config and basics. Knows plugins by name only; never builds or calls one, and never reads a file.
"""
