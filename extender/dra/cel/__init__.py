"""Compile and evaluate the CEL expressions of device selectors in device classes and claims.

The package may import `api` and `basics`. It does not depend on nodes, claims or pods. The CEL library is imported when
the first expression is compiled.

Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
"""
