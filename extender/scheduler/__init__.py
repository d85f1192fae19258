"""Run the standalone scheduler: update the cache and the queue, schedule one pod after another, and bind pods.

`event_handlers` writes changes of API objects to the cache and to the queue. `scheduler` takes pods from the queue and
runs scheduling cycles. `binder` and `binding_task` run binding cycles. `failure_handler` and `evictions` handle
failed attempts. `status_patches` and `status_writer` make and write the conditions and nominations.

The package may import `plugins`, `queueing`, `cycle`, `client` and the packages below them. It reads no files and no
flags. Its clock is injected.
"""
