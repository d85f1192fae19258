"""Compile and evaluate expressions with the CEL library.

The library is loaded when the first expression is compiled. Loading takes some tenths of a second, and clusters without
devices do not need it. The library accepts only values of CEL's own types and messages. So quantities and versions are
messages (see `values`). The library limits loops to 10,000 iterations per evaluation.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum, auto
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from extender.dra.cel.call_rewrites import find_reserved_name, rewrite_calls
from extender.dra.cel.costs import COST_METER
from extender.dra.cel.device_rewrites import EXISTING_DOMAIN_MAPS, RewrittenExpression, rewrite_device
from extender.dra.cel.equality import EQUALITY, find_compared_attributes
from extender.dra.cel.function_signature import CEL_VALUE, Function
from extender.dra.cel.functions import FUNCTIONS
from extender.dra.cel.library_references import LibraryReferences
from extender.dra.cel.lists import INCLUDES
from extender.dra.cel.messages import explain_bool_conversion, translate_compile_error, translate_message
from extender.dra.cel.size_estimate import SizeLimitError, check_size
from extender.dra.cel.syntax import NestingError, parse_expression
from extender.dra.cel.type_checks import find_type_error
from extender.dra.cel.values import SEMVER, CelValue

MAX_LENGTH: Final = 10 * 1024
"""The maximum length of an expression, in characters."""

_MESSAGE_TYPE: Final = "kubernetes.Value"
_SCALAR_TYPES: Final = frozenset(("BOOL", "INT", "STRING"))
_EXTENSIONS: Final = """
extensions:
  - {name: strings, version: 2}
  - {name: lists}
  - {name: two-var-comprehensions}
  - {name: optional}
  - {name: bindings}
"""
"""The library's extensions that are part of Kubernetes' environment."""


class ExpressionUse(Enum):
    """The use of the value of an expression, which determines its types."""

    SELECTOR = auto()
    """The value is a bool."""
    DERIVED_ATTRIBUTE = auto()
    """The value is a bool, int, string, semantic version, or a list of one of these."""


class CompileError(ValueError):
    """An expression does not compile; the message is the reason."""


class EvaluationError(ValueError):
    """The evaluation of an expression fails on a device; the message is the reason."""


class _Library(NamedTuple):
    """The CEL module, its descriptor pool, the message class of `CelValue`, and the references that it keeps."""

    cel: Any
    pool: Any
    message_class: Any
    references: LibraryReferences


@cache
def _load_library() -> _Library:
    try:
        pool = import_module("google.protobuf.descriptor_pool").DescriptorPool()
        descriptors = import_module("google.protobuf.descriptor_pb2")
        factory = import_module("google.protobuf.message_factory")
        cel = import_module("cel_expr_python.cel")
    except ImportError as error:
        raise CompileError(f"CEL needs the packages cel-expr-python and protobuf: {error}") from error
    file = descriptors.FileDescriptorProto(name="kubernetes_value.proto", package="kubernetes", syntax="proto3")
    message = file.message_type.add(name="Value")
    for number, name in enumerate(CelValue._fields, start=1):
        message.field.add(name=name, number=number, type=9, label=1)
    pool.Add(file)
    message_type = pool.FindMessageTypeByName(_MESSAGE_TYPE)
    return _Library(cel, pool, factory.GetMessageClass(message_type), LibraryReferences(cel))


def to_message(value: CelValue) -> Any:
    """Convert *value* to a message of the library."""
    return _load_library().message_class(kind=value.kind, text=value.text)


def _wrap_body(body: Callable[..., Any], library: _Library) -> Any:
    """Adapt *body* to the library: its arguments are converted from messages, and its result to messages."""
    message_class = library.message_class

    def convert_and_call(*arguments: Any) -> Any:
        result = body(*(CelValue(it.kind, it.text) if isinstance(it, message_class) else it for it in arguments))
        if isinstance(result, list):
            return [_convert_to_library(item, library) for item in result]
        return _convert_to_library(result, library)

    return library.references.wrap(convert_and_call)


def _convert_to_library(result: Any, library: _Library) -> Any:
    return library.message_class(kind=result.kind, text=result.text) if isinstance(result, CelValue) else result


def _build_declarations(functions: tuple[Function, ...], types: Mapping[str, Any], library: _Library) -> list[Any]:
    overloads: dict[str, list[Any]] = {}
    for number, function in enumerate(functions):
        overload = library.cel.Overload(
            f"kubernetes_{number}",
            types[function.result],
            [types[parameter] for parameter in function.parameters],
            is_member=function.is_method,
            impl=_wrap_body(function.body, library),
        )
        overloads.setdefault(function.name, []).append(overload)
    return [library.cel.FunctionDecl(name, function_overloads) for name, function_overloads in overloads.items()]


@cache
def _create_environment(*, device_as_value: bool) -> Any:
    """Return the environment of stored expressions, in which no feature gate removes a field or a function.

    Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
    """
    library = _load_library()
    cel_types = library.cel.Type
    message_type = cel_types(_MESSAGE_TYPE)
    types_by_name = {
        CEL_VALUE: message_type,
        "bool": cel_types.BOOL,
        "int": cel_types.INT,
        "uint": cel_types.UINT,
        "double": cel_types.DOUBLE,
        "string": cel_types.STRING,
        "bytes": cel_types.BYTES,
        "timestamp": cel_types.TIMESTAMP,
        "duration": cel_types.DURATION,
        "dyn": cel_types.DYN,
        "list(dyn)": cel_types.List(cel_types.DYN),
        "list(string)": cel_types.List(cel_types.STRING),
        f"list({CEL_VALUE})": cel_types.List(message_type),
        "map(dyn, dyn)": cel_types.Map(cel_types.DYN, cel_types.DYN),
        "list(map(dyn, dyn))": cel_types.List(cel_types.Map(cel_types.DYN, cel_types.DYN)),
        "map(string, list(string))": cel_types.Map(cel_types.STRING, cel_types.List(cel_types.STRING)),
    }
    attributes = cel_types.Map(cel_types.STRING, cel_types.Map(cel_types.STRING, cel_types.DYN))
    capacity = cel_types.Map(cel_types.STRING, cel_types.Map(cel_types.STRING, message_type))
    variables = {"device.driver": cel_types.STRING, "device.allowMultipleAllocations": cel_types.BOOL}
    for name, cel_type in (("attributes", attributes), ("capacity", capacity)):
        variables[f"device.{name}"] = variables[f"device.{EXISTING_DOMAIN_MAPS[name]}"] = cel_type
    if device_as_value:
        variables["device"] = cel_types.Map(cel_types.STRING, cel_types.DYN)
    return library.cel.NewEnv(
        library.pool,
        variables=variables,
        config=library.cel.NewEnvConfigFromYaml(_EXTENSIONS),
        functions=_build_declarations((*FUNCTIONS, *EQUALITY, *INCLUDES), types_by_name, library),
    )


class DeviceValues(NamedTuple):
    """The values of a device's fields in expressions.

    Attributes:
        allow_multiple_allocations: whether several claims may share the device.
        attributes: the attributes by domain and name, each a bool, int, str, message or list of these.
        capacity: the capacities by domain and name, as messages.
    """

    driver: str
    allow_multiple_allocations: bool
    attributes: Mapping[str, Mapping[str, Any]]
    capacity: Mapping[str, Mapping[str, Any]]


class CompiledExpression:
    """A compiled expression.

    Args:
        program: the program of the library.
        source: the text of the program, and what it reads.
        compared_words: the words in comparisons that check types first, among them the names of attributes.
        compile_checked: compiles the expression with these checks.
    """

    __slots__ = ("_checked", "_compared_words", "_compile_checked", "_program", "_source")

    def __init__(
        self,
        program: Any,
        source: RewrittenExpression,
        compared_words: frozenset[str] = frozenset(),
        compile_checked: Callable[[], "CompiledExpression"] | None = None,
    ) -> None:
        self._program = program
        self._source = source
        self._compared_words = compared_words
        self._compile_checked = compile_checked
        self._checked: CompiledExpression | None = None

    def matches(self, device: DeviceValues) -> bool:
        """Return whether the expression is true for *device*.

        Raises:
            EvaluationError: the evaluation fails, or its result is not a bool.
        """
        result_type, value = self.get_result(device)
        if isinstance(value, bool):
            return value
        kind = value.kind if result_type == _MESSAGE_TYPE else ""
        raise EvaluationError(explain_bool_conversion(result_type, kind))

    def evaluate(self, device: DeviceValues) -> Any:
        """Return the value of the expression for *device*.

        The value is a bool, int, str, semantic version, or a list of these.

        Raises:
            EvaluationError: the evaluation fails, or the value has another type.
        """
        result_type, value = self.get_result(device)
        if isinstance(value, list):
            return [_convert_scalar(str(item.type()), item.value(), "list element") for item in value]
        return _convert_scalar(result_type, value, "CEL return")

    def get_result(self, device: DeviceValues) -> tuple[str, Any]:
        """Return the type and the value of the expression for *device*.

        Raises:
            EvaluationError: the evaluation fails.
        """
        if self._compile_checked is not None and self._compares_version(device):
            self._checked = self._checked or self._compile_checked()
            return self._checked.get_result(device)
        COST_METER.reset()
        try:
            result = self._program.eval(data=self._build_variables(device))
            result_type, value = str(result.type()), result.value()
        except Exception as error:
            raise EvaluationError(translate_message(str(error))) from error
        finally:
            _load_library().references.release()
        if COST_METER.final_error:
            raise EvaluationError(COST_METER.final_error)
        if result_type == "ERROR":
            raise EvaluationError(translate_message(str(value)))
        return result_type, value

    def _compares_version(self, device: DeviceValues) -> bool:
        """Return whether a comparison may have a semantic version of *device* as its left operand."""
        message_class = _load_library().message_class
        return any(
            isinstance(attributes.get(word), message_class)
            for attributes in device.attributes.values()
            for word in self._compared_words
        )

    def _build_variables(self, device: DeviceValues) -> dict[str, Any]:
        source = self._source
        empty_maps: dict[str, Mapping[str, Any]] = {domain: {} for domain in source.domains}
        empty_maps[device.driver] = {}
        variables: dict[str, Any] = {
            "device.driver": device.driver,
            "device.allowMultipleAllocations": device.allow_multiple_allocations,
            "device.attributes": {**empty_maps, **device.attributes},
            "device.capacity": {**empty_maps, **device.capacity},
        }
        for name in source.maps_as_values:
            variables[f"device.{EXISTING_DOMAIN_MAPS[name]}"] = getattr(device, name)
        if source.device_as_value:
            variables["device"] = {name.partition(".")[2]: value for name, value in variables.items()}
        return variables


def _convert_scalar(result_type: str, value: Any, position: str) -> bool | int | str | CelValue:
    """Return *value* as a value of Python; a semantic version as `CelValue`.

    Raises:
        EvaluationError: the type is another one; the message names the *position* of the value.

    Source: dynamic-resource-allocation/cel/compile.go, valToDeviceAttribute (1.37).
    """
    if result_type == _MESSAGE_TYPE and value.kind == SEMVER:
        return CelValue(SEMVER, value.text)
    if result_type in _SCALAR_TYPES:
        scalar: bool | int | str = value
        return scalar
    raise EvaluationError(f"unsupported {position} type: {result_type.lower()}")


def _find_type_error(return_type: str, use: ExpressionUse) -> str:
    """Return the error of an expression whose value has no type for its *use*; empty if the type is valid.

    Source: dynamic-resource-allocation/cel/compile.go, compiler.validateOutputType (1.37).
    """
    type_name = return_type.lower().replace("<", "(").replace(">", ")")
    if use is ExpressionUse.SELECTOR:
        is_valid = return_type in {"BOOL", "DYN"}
        return "" if is_valid else f"must evaluate to bool or the unknown type, not {type_name}"
    element_type = return_type.removeprefix("LIST<").removesuffix(">")
    if element_type in {*_SCALAR_TYPES, "DYN", _MESSAGE_TYPE}:
        return ""
    scalars = "a primitive scalar (string, integer, boolean, semver)"
    return f"must evaluate to {scalars} or a list of these scalars, not {type_name}"


def compile_expression(expression: str, use: ExpressionUse = ExpressionUse.SELECTOR) -> CompiledExpression:
    """Compile *expression*.

    Raises:
        CompileError: the expression is too long or invalid, or its value has no type for its *use*.
    """
    if len(expression) > MAX_LENGTH:
        raise CompileError(f"must be no longer than {MAX_LENGTH} characters, has {len(expression)}")
    if name := find_reserved_name(expression):
        raise CompileError(f"compilation failed: undeclared reference to '{name}'")
    program, source = _compile_text(expression)
    if type_error := _find_type_error(str(program.return_type()), use):
        raise CompileError(type_error)
    try:
        checked_expression = parse_expression(program.serialize())
    except NestingError as error:
        raise CompileError("compilation failed: nested too deeply") from error
    if type_error := find_type_error(checked_expression, source.text, expression):
        raise CompileError(f"compilation failed: {type_error}")
    try:
        check_size(checked_expression)
    except SizeLimitError as error:
        raise CompileError("too complex, its values or the work to compute them may exceed the limits") from error
    compared = find_compared_attributes(expression)
    if compared.has_value_on_left:
        return CompiledExpression(*_compile_text(compared.text))
    return CompiledExpression(
        program,
        source,
        compared.words,
        (lambda: CompiledExpression(*_compile_text(compared.text))) if compared.words else None,
    )


def _compile_text(expression: str) -> tuple[Any, RewrittenExpression]:
    """Return the program of *expression*, and its rewritten text.

    Raises:
        CompileError: the expression is invalid.
    """
    source = rewrite_device(rewrite_calls(expression))
    environment = _create_environment(device_as_value=source.device_as_value)
    try:
        program, type_checked = _compile_program(environment, source.text)
    except Exception as error:
        message = _translate_failure(environment, expression, source.text, str(error))
        raise CompileError(f"compilation failed: {message}") from error
    return program, source if type_checked else replace(source, device_as_value=True)


def _translate_failure(environment: Any, expression: str, text: str, error: str) -> str:
    """Return the message of *error*, which the rewritten *text* causes.

    If the expression itself has as many errors, they are its errors, so that the message has their places.
    """
    try:
        environment.compile(expression)
    except RuntimeError as original_error:
        if str(original_error).count("ERROR:") == error.count("ERROR:"):
            return translate_compile_error(str(original_error), expression)
    return translate_compile_error(error, text)


_MIXED_NUMBER_TYPES: Final = tuple(
    f"'({left}, {right})'" for left in ("int", "uint", "double") for right in ("int", "uint", "double") if left != right
)
_COMPARISON_ERRORS: Final = tuple(f"overload for '_{sign}_'" for sign in ("<", "<=", ">", ">="))


def _compile_program(environment: Any, text: str) -> tuple[Any, bool]:
    """Return the program of *text*, and whether its types were checked.

    Kubernetes can compare numbers of different types, which the library supports only without type checking.
    """
    try:
        return environment.compile(text), True
    except RuntimeError as error:
        messages = [line for line in str(error).splitlines() if "ERROR:" in line]
        if not messages or not all(_is_number_comparison_error(line) for line in messages):
            raise
        return environment.compile(text, disable_check=True), False


def _is_number_comparison_error(message: str) -> bool:
    return any(sign in message for sign in _COMPARISON_ERRORS) and any(
        types in message for types in _MIXED_NUMBER_TYPES
    )
