"""CEL expressions over devices: the selectors of device classes and claims. Source: B123.

May import objects and basics. Compiles and evaluates; never knows of nodes, claims or pods. The library that does it is
loaded with the first expression.
"""
