"""Send requests to the API server (lists, watches, writes, leases, events) and to HTTP extenders.

These modules are for the API server, from the bottom up:

- errors, rate_limit, proxies, kubeconfig, credentials
- transport: requests over one session; rest_mapping: kinds and their paths
- listwatch, watch, reflector, writer
- leader_election, leader_elector, events, event_broadcaster

The modules extender and extender_transport are for HTTP extenders.

The package may import `config`, `logs`, `api` and `basics`. It has no scheduling rules and never blocks the event loop.
Only reflectors keep objects of the cluster.
"""
