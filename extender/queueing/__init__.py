"""Implement the scheduling queue, which selects the next pod to schedule.

    new --> activeQ --pop--> in flight --(assumed)--> done
      |        ^                |
      |        |                +--rejected--> unschedulable pods --event, timeout--> backoffQ --> activeQ
      +--> gated (unschedulable pods) ---event---^         +--error--> backoffQ ----------------^

The queue is a state machine without clock, threads or I/O. Callers pass cluster events and the time. The package may
import `framework` and the packages below it.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue (1.36).
"""
