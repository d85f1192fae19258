"""The standalone scheduler: event handlers, the loop that schedules one pod after another, and the binding of pods.

`event_handlers` writes changes of API objects to the cache and to the queue. `scheduler` takes pods from the queue and
runs scheduling cycles. `binder` and `binding_task` run binding cycles. `failure_handler`, `evictions` and
`status_patches` handle failed attempts.
May import `queueing`, `cycle`, `client` and below. Reads no files and no flags; the clock is injected.
"""
