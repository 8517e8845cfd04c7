"""JSON Schemas that check requests, and stand in the OpenAPI document as they are.

Only the keywords in `KEYWORDS` are known. `verify_schema` refuses any other, so that the document
never promises what is not checked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from elmokit.errors import ConfigError

Schema = Mapping[str, Any]
"""A JSON Schema (2020-12), as OpenAPI 3.1 uses it."""

NOTES = {"description", "default", "examples", "title", "format", "contentEncoding"}
"""Keywords that describe and check nothing."""
KEYWORDS = NOTES | {
    "additionalProperties",
    "anyOf",
    "enum",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
}
"""All keywords that a schema of a request may have."""
LIMITS = {"maxItems", "maxLength"}
"""Keywords that stand for limits of the server rather than for what makes sense."""


class SchemaMismatch(Exception):
    """A value that does not fit a schema."""

    def __init__(self, message: str, path: str, keyword: str) -> None:
        """Make an error.

        Args:
            message: What was found and what was expected.
            path: Where, such as `input[3]`.
            keyword: The keyword of the schema that the value does not fit.
        """
        super().__init__(message)
        self.path = path
        self.keyword = keyword


def check_value(value: Any, schema: Schema, path: str = "") -> Any:
    """Return a JSON value that fits a schema, integers as `int`; else raise `SchemaMismatch`."""
    if "anyOf" in schema:
        return _check_alternatives(value, schema["anyOf"], path)
    kinds = schema.get("type")
    if kinds is not None:
        allowed = [kinds] if isinstance(kinds, str) else list(kinds)
        if not any(_has_type(value, kind) for kind in allowed):
            expected = " or ".join(_ARTICLES[kind] for kind in allowed)
            raise _mismatch(path, f"is {describe(value)}; expected {expected}", "type")
        if isinstance(value, float) and "integer" in allowed:
            value = int(value)
    if "enum" in schema and not any(
        value == each and type(value) is type(each) for each in schema["enum"]
    ):
        offered = ", ".join(repr(each) for each in schema["enum"])
        raise _mismatch(path, f"is {describe(value)}; expected one of {offered}", "enum")
    if isinstance(value, str):
        _check_size(len(value), "Length", "characters", schema, path)
        if "pattern" in schema and not re.search(schema["pattern"], value):
            expected = schema.get("description", f"a match of {schema['pattern']}")
            raise _mismatch(path, f"is {describe(value)}; expected: {expected}", "pattern")
    elif isinstance(value, list):
        _check_size(len(value), "Items", "items", schema, path)
        items = schema.get("items", {})
        return [check_value(each, items, f"{path}[{i}]") for i, each in enumerate(value)]
    elif isinstance(value, dict):
        return _check_object(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        if not low <= value <= high:
            keyword = "minimum" if value < low else "maximum"
            bounds = f"at least {low}" if high == math.inf else f"a number from {low} to {high}"
            raise _mismatch(path, f"is {describe(value)}; expected {bounds}", keyword)
    return value


def verify_schema(schema: Schema) -> None:
    """Raise `ConfigError` if a schema has a keyword that `check_value` does not check."""
    unknown = set(schema) - KEYWORDS
    if unknown:
        raise ConfigError(f"a schema has {', '.join(sorted(unknown))}, which is not checked")
    for child in (*schema.get("anyOf", ()), *schema.get("properties", {}).values()):
        verify_schema(child)
    if "items" in schema:
        verify_schema(schema["items"])


def describe(value: Any) -> str:
    """Return what a JSON value is, in words, without quoting long text."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f"{value!r}" if len(value) <= 40 else f"a string of {len(value):,} characters"
    if isinstance(value, list):
        return "an array" if value else "an empty array"
    if isinstance(value, dict):
        return "an object"
    return f"{value:.10g}" if isinstance(value, float) else f"{value}"[:40]


def _check_alternatives(value: Any, alternatives: list[Schema], path: str) -> Any:
    """Return the value as the first alternative that it fits returns it."""
    problems = []
    for schema in alternatives:
        try:
            return check_value(value, schema, path)
        except SchemaMismatch as problem:
            problems.append(problem)
    # What is wrong deep inside, or beyond a limit, says more than a list of alternatives.
    telling = [each for each in problems if each.path != path or each.keyword != "type"]
    if len(telling) == 1:
        raise telling[0]
    deeper = [each for each in telling if each.path.startswith(f"{path}[") and path]
    if deeper:
        raise deeper[0]
    expected = ", or ".join(_summary(schema) for schema in alternatives)
    raise _mismatch(path, f"is {describe(value)}; expected {expected}", "anyOf")


def _check_object(value: dict[str, Any], schema: Schema, path: str) -> dict[str, Any]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            raise _mismatch(_join(path, name), "is missing", "required")
    checked = {}
    for name, each in value.items():
        if name in properties:
            checked[name] = check_value(each, properties[name], _join(path, name))
        elif schema.get("additionalProperties", True) is False:
            known = ", ".join(properties)
            shown = name if len(name) <= 40 else name[:40] + "…"
            message = f"is not known; expected only {known}"
            raise _mismatch(_join(path, shown), message, "additionalProperties")
        else:
            checked[name] = each
    return checked


def _check_size(size: int, suffix: str, unit: str, schema: Schema, path: str) -> None:
    low, high = schema.get(f"min{suffix}", 0), schema.get(f"max{suffix}", math.inf)
    if size < low:
        found = "empty" if not size else f"{size:,} {unit} long"
        least = f"one {unit[:-1]}" if low == 1 else f"{low} {unit}"
        raise _mismatch(path, f"is {found}; expected at least {least}", f"min{suffix}")
    if size > high:
        message = f"has {size:,} {unit}; expected at most {high:,}"
        raise _mismatch(path, message, f"max{suffix}")


def _has_type(value: Any, kind: str) -> bool:
    if kind == "integer":
        return (isinstance(value, int) and not isinstance(value, bool)) or (
            isinstance(value, float) and value.is_integer()
        )
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, _TYPES[kind])


def _mismatch(path: str, message: str, keyword: str) -> SchemaMismatch:
    return SchemaMismatch(f"{path or 'the body'} {message}", path, keyword)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _summary(schema: Schema) -> str:
    if "enum" in schema:
        return " or ".join(repr(each) for each in schema["enum"])
    kind = schema.get("type", "object")
    if kind == "array":
        return "an array"
    if kind == "object" and "required" in schema:
        return f"an object with {' and '.join(schema['required'])}"
    if kind == "integer" and "maximum" in schema:
        return f"an integer from {schema.get('minimum', 0)} to {schema['maximum']}"
    return _ARTICLES[kind] if isinstance(kind, str) else " or ".join(_ARTICLES[k] for k in kind)


_TYPES: dict[str, type[Any]] = {
    "string": str,
    "array": list,
    "object": dict,
    "boolean": bool,
    "null": type(None),
}
_ARTICLES = {
    "string": "a string",
    "array": "an array",
    "object": "an object",
    "boolean": "true or false",
    "null": "null",
    "integer": "an integer",
    "number": "a number",
}
