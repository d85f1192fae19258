"""The scheduling queue: a state machine without clock, threads or I/O. Callers pass events and the time.

    new --> activeQ --pop--> in flight --(assumed)--> done
      |        ^                |
      |        |                +--rejected--> unschedulable pods --event, timeout--> backoffQ --> activeQ
      +--> gated (unschedulable pods) ---event---^         +--error--> backoffQ ----------------^

May import `framework` and below. Selects no nodes.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue (1.36).
"""
