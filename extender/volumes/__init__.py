"""Persistent volumes for plugins: binding, provisioning, node volume limits and CSI migration.

Computes which volumes a pod can use on which nodes; the plugins turn this into Filter results. May import `cache`,
`config`, `api` and `basics`.
"""
