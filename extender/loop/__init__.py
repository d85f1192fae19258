"""The standalone scheduler: takes pods from the queue, decides, assumes, and has them bound.

One event loop runs everything; a scheduling cycle is one plain call, a binding cycle is a task. Only where outbound
extenders have their say does a scheduling cycle wait (`consulting`, `negotiating`). What the API server is asked goes
through the protocols of `outside`. May import `queueing`, `feed`, `preemption`, `decide` and below. Holds no rule
about placement.
"""
