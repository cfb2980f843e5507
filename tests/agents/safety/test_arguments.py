"""Arguments beside a server's schema, which is a stranger's text."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema.exceptions import ValidationError

from callsheet.agents.safety import schema_validators
from callsheet.agents.safety.arguments import Fit, fit_of

DRAFT = "https://json-schema.org/draft/2020-12/schema"
EVIL = "^(a|b|ab)*(a|aa)+(a|aa)+$"
LONG = "a" * 60 + "!"


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def doubling(levels: int) -> dict[str, Any]:
    """A small schema in which each level refers twice to the next one."""
    defs: dict[str, Any] = {
        f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]} for i in range(levels)
    }
    return {**of(x={"$ref": "#/$defs/d0"}), "$defs": {**defs, f"d{levels}": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "args", "words"),
    [
        (of(x={"type": "integer"}), {"x": "two"}, "x: 'two' is not of type 'integer'"),
        ({**of(), "required": ["x"]}, {}, "'x' is a required property"),
        ({**of(), "additionalProperties": False}, {"y": 1}, "'y' was unexpected"),
        (of(x={"enum": ["a", "b"]}), {"x": "c"}, "'c' is not one of ['a', 'b']"),
        (of(x={"pattern": "^[0-9]+$"}), {"x": "ten"}, "'ten' does not match '^[0-9]+$'"),
        (of(x={"items": {"type": "string"}}), {"x": ["a", 5]}, "x.1: 5 is not of type 'string'"),
        ({"patternProperties": {"^n_": {"type": "number"}}}, {"n_a": "b"}, "n_a: 'b' is not of type 'number'"),
        ({**of(x={"$ref": "#/$defs/N"}), "$defs": {"N": {"type": "null"}}}, {"x": 1}, "1 is not of type 'null'"),
        ({"if": {"required": ["x"]}, "then": {"required": ["y"]}}, {"x": 1}, "'y' is a required property"),
        ({"not": {"required": ["x"]}}, {"x": 1}, "{'x': 1} should not be valid under {'required': ['x']}"),
        (of(x={"contains": {"const": 2}}), {"x": [1]}, "[1] does not contain items matching the given schema"),
        ({"oneOf": [{"required": ["x"]}, {"required": ["y"]}]}, {"x": 1, "y": 2}, "is valid under each of"),
    ],
)
def test_an_error_says_which_argument_does_not_fit_and_what_is_expected(schema: Any, args: Any, words: str) -> None:
    said = str(fit_of(schema, args).misfit)
    assert words in said
    assert said.endswith("Nothing was sent: correct them and call again")


@pytest.mark.parametrize(
    "schema",
    [
        {},
        of(x={"type": "integer"}),
        of(x={"pattern": "("}),
        of(y={"$ref": "#/$defs/Missing"}),
        {"$schema": "https://example.invalid/unknown", **of()},
        {"type": ["object"], "properties": {"x": True}},
        {"patternProperties": {"^y": False}, "properties": {"x": {}}, "additionalProperties": False},
        {"patternProperties": {"^x": {"minimum": 5}}, "additionalProperties": False},
        {"patternProperties": {"^y": {}}, "additionalProperties": {"type": "integer"}},
    ],
)
def test_arguments_that_fit_have_no_error(schema: Any) -> None:
    assert fit_of(schema, {"x": 5}) == Fit()


@pytest.mark.parametrize("more", [False, {"type": "string"}])
def test_names_beside_patterns_are_checked_too(more: Any) -> None:
    schema = {"patternProperties": {"^n_": {}}, "properties": {"y": {}}, "additionalProperties": more}
    assert fit_of(schema, {"y": 1, "n_a": 2}) == Fit()
    assert fit_of(schema, {"x": 5}).misfit


def test_a_library_that_panics_at_the_limit_of_recursion_ends_the_check_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def broken(error: type[BaseException]) -> Any:
        def validator(schema: str) -> Any:
            raise error("__eq__ failed")

        return validator

    monkeypatch.setattr("callsheet.agents.safety.schema_validators._validator_of", broken(PanicException))
    assert "its schema cannot be used (PanicException: __eq__ failed)" in str(fit_of({}, {}).unchecked)
    monkeypatch.setattr("callsheet.agents.safety.schema_validators._validator_of", broken(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        fit_of({}, {})


@pytest.mark.parametrize(
    ("schema", "args"),
    [
        (of(x={"type": "objekt"}), {"x": 5}),
        (of(x={"$ref": "#/$defs/Missing"}), {"x": 5}),
        (of(x={"$ref": "http://127.0.0.1:9/steal.json"}), {"x": 5}),
        ({"allOf": [{"$ref": "#"}]}, {"x": 5}),
        (of(x={"pattern": "("}), {"x": "a"}),
        ({"patternProperties": {"^y": {}}, "unevaluatedProperties": False}, {"x": 5}),
    ],
)
def test_an_unusable_schema_is_reported_as_unchecked(schema: Any, args: Any) -> None:
    for _ in range(2):
        found = fit_of(schema, args)
        assert found.misfit is None
        assert str(found.unchecked).startswith("the arguments were not checked: its schema cannot be used (")


@pytest.mark.parametrize(
    ("schema", "args"),
    [
        (of(x={"pattern": EVIL}), {"x": LONG}),
        ({"patternProperties": {EVIL: {}}}, {LONG: 1}),
        ({"patternProperties": {EVIL: {}}, "additionalProperties": False}, {LONG: 1}),
        ({"patternProperties": {EVIL: {}}, "unevaluatedProperties": False}, {LONG: 1}),
        (of(x={"allOf": [{"pattern": f"{EVIL}|{i}"} for i in range(2_000)]}), {"x": LONG}),
        (of(x={"$schema": DRAFT, "pattern": EVIL}), {"x": LONG}),
        ({**of(x={"$ref": "#/$defs/y"}), "$defs": {"y": {"$schema": DRAFT, "pattern": EVIL}}}, {"x": LONG}),
        (of(x={"items": {"pattern": EVIL}}), {"x": [f"{LONG}{i}" for i in range(2_000)]}),
        (doubling(40), {"x": "a"}),
        ({**doubling(40), "unevaluatedProperties": False}, {"x": "a"}),
        ({"allOf": [{"anyOf": [{"not": {"type": "null"}}] * 10}] * 20_000}, {"x": "a"}),
    ],
    ids=range(11),
)
def test_a_check_over_its_time_limit_is_reported_as_unchecked(
    schema: Any, args: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_validators, "_SECONDS", 0.2)
    why = "the arguments were not checked: the check against its schema takes too long"
    assert str(fit_of(schema, args).unchecked) == why


def test_a_check_that_timed_out_is_repeated_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = of(x={"type": "integer"}, y={"title": "A schema of this test alone."})
    with monkeypatch.context() as slow:
        slow.setattr(schema_validators, "_SECONDS", -1.0)
        assert fit_of(schema, {"x": "two"}).unchecked
    assert "'two' is not of type 'integer'" in str(fit_of(schema, {"x": "two"}).misfit)


def test_only_the_first_three_errors_are_quoted() -> None:
    schema, args = of(**{f"x{i}": {"type": "null"} for i in range(9)}), {f"x{i}": "y" * 5_000 for i in range(9)}
    said = str(fit_of(schema, args).misfit)
    assert said.count("is not of type") <= 3
    assert "and 6 more" in said
    assert len(said) < 1_500


def test_many_errors_are_sorted_without_formatting_value_and_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    def whole(error: ValidationError) -> str:
        raise AssertionError(error.message)

    monkeypatch.setattr(ValidationError, "__str__", whole)
    schema = {"patternProperties": {"^x-": {}}, "additionalProperties": False}
    assert "('n0' was unexpected)" in (said := str(fit_of(schema, {f"n{i}": i for i in range(3_000)}).misfit))
    assert "; and 2997 more" in said
