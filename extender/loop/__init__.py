"""The standalone scheduler: takes pods from the queue, decides, assumes, and has them bound.

One event loop runs everything; a scheduling cycle is one plain call, a binding cycle is a task. A scheduling cycle
waits only where outbound extenders have their say (`consulting`, `negotiating`), and between the members of a pod group
(`grouping`). Calls to the API server go through the protocol `carrying.Api`, all else of the world through those of
`outside`. May import `carrying`, `queueing`, `feed`, `plugins`, `preemption`, `decide` and below. Holds no rule about
placement.
"""
