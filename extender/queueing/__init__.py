"""Pods that wait for a node: a machine without clock, thread or I/O; changes and the time go in, pods come out.

    new --> active --pop--> in flight --(placed)--> done
      |        ^                |
      |        |                +--rejected--> parked --event, time--> backing off --> active
      +--> gated (parked) ---event---^         +--error--> backing off ----------------^

May import `framework` and below. Never decides where a pod goes. Source: reference D.
"""
