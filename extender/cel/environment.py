"""Compiling and evaluating expressions with the CEL library.

The library and its message classes are loaded with the first expression: that takes some tenths of a second, which
who has no devices need not wait for. Its values cannot be Python's own objects, so quantities and versions cross over
as messages (see `values`). Loops are limited by the library to 10,000 rounds an evaluation.

Source: B123.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from extender.cel.calls import invented, known
from extender.cel.costs import EXCEEDED, METER
from extender.cel.functions import FUNCTIONS
from extender.cel.lists import INCLUDES
from extender.cel.signature import KEPT, Function
from extender.cel.source import DOMAINS, Source, read
from extender.cel.values import Kept

MAX_LENGTH: Final = 10 * 1024
"""The longest expression that is read, in characters."""

_MESSAGE: Final = "kubernetes.Value"
_EXTENSIONS: Final = """
extensions:
  - {name: strings, version: 2}
  - {name: lists}
  - {name: two-var-comprehensions}
  - {name: optional}
  - {name: bindings}
"""
"""What the library has of Kubernetes' environment beside the language itself."""


class Dialect(NamedTuple):
    """What expressions may use.

    Attributes:
        shares: the field allowMultipleAllocations (gate DRAConsumableCapacity).
        lists: attributes that are lists, and `includes` (gate DRAListTypeAttributes).
    """

    shares: bool = True
    lists: bool = False


class CompileError(ValueError):
    """An expression that cannot be compiled, with the reason."""


class EvaluationError(ValueError):
    """An expression that fails on a device, with the reason."""


class _Library(NamedTuple):
    """The library's parts that are used."""

    cel: Any
    pool: Any
    message: Any


@cache
def _library() -> _Library:
    try:
        pool = import_module("google.protobuf.descriptor_pool").DescriptorPool()
        descriptors = import_module("google.protobuf.descriptor_pb2")
        factory = import_module("google.protobuf.message_factory")
        cel = import_module("cel_expr_python.cel")
    except ImportError as fault:
        raise CompileError(f"CEL needs the packages cel-expr-python and protobuf: {fault}") from fault
    file = descriptors.FileDescriptorProto(name="kubernetes_value.proto", package="kubernetes", syntax="proto3")
    message = file.message_type.add(name="Value")
    for number, name in enumerate(Kept._fields, start=1):
        message.field.add(name=name, number=number, type=9, label=1)
    pool.Add(file)
    return _Library(cel, pool, factory.GetMessageClass(pool.FindMessageTypeByName(_MESSAGE)))


def message(value: Kept) -> Any:
    """*value* as the library takes it."""
    return _library().message(kind=value.kind, text=value.text)


def _crossing(body: Callable[..., Any], library: _Library) -> Callable[..., Any]:
    """*body* called by the library: its messages in, messages out."""

    def called(*arguments: Any) -> Any:
        answer = body(*(_from_library(argument, library) for argument in arguments))
        if isinstance(answer, list):
            return [_to_library(each, library) for each in answer]
        return _to_library(answer, library)

    return called


def _to_library(answer: Any, library: _Library) -> Any:
    return library.message(kind=answer.kind, text=answer.text) if isinstance(answer, Kept) else answer


def _from_library(argument: Any, library: _Library) -> Any:
    return Kept(argument.kind, argument.text) if isinstance(argument, library.message) else argument


def _declarations(functions: tuple[Function, ...], types: Mapping[str, Any], library: _Library) -> list[Any]:
    overloads: dict[str, list[Any]] = {}
    for number, function in enumerate(functions):
        overload = library.cel.Overload(
            f"kubernetes_{number}",
            types[function.result],
            [types[parameter] for parameter in function.parameters],
            is_member=function.method,
            impl=_crossing(function.body, library),
        )
        overloads.setdefault(function.name, []).append(overload)
    return [library.cel.FunctionDecl(name, each) for name, each in overloads.items()]


@cache
def _environment(dialect: Dialect, *, whole_device: bool) -> Any:
    library = _library()
    kinds = library.cel.Type
    kept = kinds(_MESSAGE)
    types = {
        KEPT: kept,
        "bool": kinds.BOOL,
        "int": kinds.INT,
        "uint": kinds.UINT,
        "double": kinds.DOUBLE,
        "string": kinds.STRING,
        "bytes": kinds.BYTES,
        "timestamp": kinds.TIMESTAMP,
        "duration": kinds.DURATION,
        "dyn": kinds.DYN,
        "list": kinds.List(kinds.DYN),
        "strings": kinds.List(kinds.STRING),
        "kepts": kinds.List(kept),
        "dyns": kinds.Map(kinds.DYN, kinds.DYN),
        "maps": kinds.List(kinds.Map(kinds.DYN, kinds.DYN)),
        "map": kinds.Map(kinds.STRING, kinds.List(kinds.STRING)),
    }
    attributes = kinds.Map(kinds.STRING, kinds.Map(kinds.STRING, kinds.DYN))
    capacity = kinds.Map(kinds.STRING, kinds.Map(kinds.STRING, kept))
    variables = {"device.driver": kinds.STRING}
    for name, kind in (("attributes", attributes), ("capacity", capacity)):
        variables[f"device.{name}"] = variables[f"device.{DOMAINS[name]}"] = kind
    if dialect.shares:
        variables["device.allowMultipleAllocations"] = kinds.BOOL
    if whole_device:
        variables["device"] = kinds.Map(kinds.STRING, kinds.DYN)
    functions = (*FUNCTIONS, *INCLUDES) if dialect.lists else FUNCTIONS
    return library.cel.NewEnv(
        library.pool,
        variables=variables,
        config=library.cel.NewEnvConfigFromYaml(_EXTENSIONS),
        functions=_declarations(functions, types, library),
    )


class DeviceValues(NamedTuple):
    """A device as expressions see it.

    Attributes:
        driver: of its slice.
        shared: whether it may be allocated several times.
        attributes: by domain and name: bool, int, str, `Kept` as a message, or lists of those.
        capacity: by domain and name, as messages.
    """

    driver: str
    shared: bool
    attributes: Mapping[str, Mapping[str, Any]]
    capacity: Mapping[str, Mapping[str, Any]]


class Expression:
    """A compiled expression."""

    __slots__ = ("_program", "_source")

    def __init__(self, program: Any, source: Source) -> None:
        self._program = program
        self._source = source

    def matches(self, device: DeviceValues) -> bool:
        """Whether the expression is true of *device*.

        Raises:
            EvaluationError: it fails, or is neither true nor false.
        """
        METER.reset()
        try:
            answer = self._program.eval(data=self._data(device))
            kind, value = str(answer.type()), answer.value()
        except Exception as fault:
            raise EvaluationError(_readable(str(fault))) from fault
        if isinstance(value, bool):
            return value
        if kind == "ERROR":
            raise EvaluationError(_readable(str(value)))
        raise EvaluationError(f"CEL result of type {kind.lower()} could not be converted to bool")

    def _data(self, device: DeviceValues) -> dict[str, Any]:
        source = self._source
        empty: dict[str, Mapping[str, Any]] = {domain: {} for domain in source.domains}
        empty[device.driver] = {}
        data: dict[str, Any] = {
            "device.driver": device.driver,
            "device.allowMultipleAllocations": device.shared,
            "device.attributes": {**empty, **device.attributes},
            "device.capacity": {**empty, **device.capacity},
        }
        for name in source.whole_maps:
            data[f"device.{DOMAINS[name]}"] = getattr(device, name)
        if source.whole_device:
            data["device"] = {name.partition(".")[2]: value for name, value in data.items()}
        return data


def compiled(expression: str, dialect: Dialect) -> Expression:
    """*expression* compiled.

    Raises:
        CompileError: it is too long, wrong, or neither true nor false.
    """
    if len(expression) > MAX_LENGTH:
        raise CompileError(f"must be no longer than {MAX_LENGTH} characters, has {len(expression)}")
    if name := invented(expression):
        raise CompileError(f"compilation failed: undeclared reference to '{name}'")
    source = read(known(expression))
    environment = _environment(dialect, whole_device=source.whole_device)
    try:
        program, checked = _program(environment, source.text)
    except Exception as fault:
        raise CompileError(f"compilation failed: {_readable(str(fault))}") from fault
    kind = str(program.return_type())
    if kind not in {"BOOL", "DYN"}:
        raise CompileError(f"must evaluate to bool or the unknown type, not {kind.lower()}")
    return Expression(program, source if checked else replace(source, whole_device=True))


_MIXED: Final = tuple(
    f"'({one}, {other})'" for one in ("int", "uint", "double") for other in ("int", "uint", "double") if one != other
)
_COMPARING: Final = tuple(f"overload for '_{sign}_'" for sign in ("<", "<=", ">", ">="))


def _program(environment: Any, text: str) -> tuple[Any, bool]:
    """The program of *text*, and whether its types were checked.

    Numbers of different types may be compared, which the library allows in unchecked programs only.
    """
    try:
        return environment.compile(text), True
    except RuntimeError as fault:
        complaints = [line for line in str(fault).splitlines() if "ERROR:" in line]
        if not complaints or not all(_compares_numbers(line) for line in complaints):
            raise
        return environment.compile(text, disable_check=True), False


def _compares_numbers(complaint: str) -> bool:
    return any(sign in complaint for sign in _COMPARING) and any(types in complaint for types in _MIXED)


def _readable(text: str) -> str:
    """What the library says, in upstream's words where they are known."""
    _, _, detail = text.partition(": ")
    if detail.startswith("Key not found in map"):
        return f"no such key: {detail.rpartition(':')[2].strip().strip(chr(34))}"
    if detail.startswith("No matching overloads found"):
        return "no such overload"
    if detail.startswith("Iteration budget exceeded"):
        return EXCEEDED
    return " ".join((detail or text).split()).replace("'__", "'")
