"""CEL expressions of device selectors in device classes and claims.

May import api and basics. The package compiles and evaluates expressions; it does not depend on nodes, claims
or pods. The CEL library is loaded with the first expression.

Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
"""
