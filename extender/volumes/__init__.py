"""Find the volumes that a pod can use on each node: binding, provisioning, node volume limits, CSI migration.

The volume plugins convert these results to Filter results. The package may import `cache`, `config`, `api` and
`basics`.
"""
