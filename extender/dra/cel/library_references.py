"""Release the references that the CEL library keeps to the arguments and results of our functions.

cel-expr-python 0.1.3 never releases the tuple of arguments and the result of a Python function that it calls. Each
comparison of two quantities would take 2.5 kB until the process ends. So the functions hold these objects until the
evaluation ends, and then drop the references of the library too. Nothing is dropped if a test call shows that the
library has released its references itself.

Source: cel-expr-python, cel_expr_python/py_cel_function.cc, PyCelFunctionAdapter::Invoke.
"""

import ctypes
import sys
from collections.abc import Callable
from typing import Any, Final

_METH_VARARGS: Final = 1
"""The flag of a C function that is called with the tuple of its arguments."""


class _MethodDefinition(ctypes.Structure):
    """A PyMethodDef of CPython's C API."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


_CALL_WITH_TUPLE: Final = _MethodDefinition(
    b"call_with_tuple", ctypes.cast(ctypes.pythonapi.PyObject_CallOneArg, ctypes.c_void_p), _METH_VARARGS, None
)
_new_function: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
_decrement_reference_count: Any = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_DecRef", ctypes.pythonapi))


class LibraryReferences:
    """The objects of which the library keeps a reference after the calls of the current evaluation."""

    def __init__(self, cel: Any) -> None:
        """Test whether the library keeps references. *cel* is the module of the library."""
        self._objects: list[Any] = []
        function = cel.FunctionDecl(
            "f", [cel.Overload("f", cel.Type.STRING, [cel.Type.STRING], is_member=False, impl=self.wrap(str.upper))]
        )
        cel.NewEnv(functions=[function]).compile('f("a")').eval(data={})
        objects_without_library = [tuple("a"), "a".upper()]  # new objects like those in the list
        self._must_release = all(
            sys.getrefcount(self._objects[index]) > sys.getrefcount(objects_without_library[index]) for index in (0, 1)
        )
        self.release()

    def wrap(self, body: Callable[..., Any]) -> Any:
        """Return a function for the library that calls *body*."""

        def call(arguments: tuple[Any, ...]) -> Any:
            self._objects.append(arguments)
            result = body(*arguments)
            self._objects.append(result)
            return result

        return _new_function(ctypes.addressof(_CALL_WITH_TUPLE), call, None)

    def release(self) -> None:
        """Drop the references that the library keeps. Call it after each evaluation."""
        while self._objects:
            retained_object = self._objects.pop()
            if self._must_release:
                _decrement_reference_count(retained_object)
