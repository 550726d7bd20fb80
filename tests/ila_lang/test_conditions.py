"""What conditions on sizes look like: the text says what the condition says, whatever text the author gave."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from random import Random
from typing import Any

import pytest

from ila_lang import Expr, bv, compile_terms, const, var
from ila_lang.conditions import condition_text
from ila_lang.mapping import SizeError
from tests.chc.mapping.toy import DOMAIN, M, N, mapping

X, Y, Z = (var(name, bv(32)) for name in "xyz")


@pytest.mark.parametrize(
    "condition, text",
    [
        ((X >= 1) & (X <= 341), "1 <= x <= 341"),
        ((X > 1) & (X < Y), "1 < x < y"),
        (X + (Y + 15)[31:4].zext(32) * Z * 16 <= 65536, "x + 16*ceil(y/16)*z <= 65536"),
        ((X + Y)[31:4].zext(32) <= Z, "floor((x + y)/16) <= z"),
        (X * (Y + Z) <= X - (Y - Z), "x*(y + z) <= x - (y - z)"),
        (X[1:0] == 0, "x is a multiple of 4"),
        (X % 6 != 0, "x is no multiple of 6"),
        (X[4:1] == 3, "floor(x/2) mod 16 = 3"),
        (X * Y == Z, "z = x*y"),
        (((X <= 3) & (Y <= 4)) | (X == 9), "(x <= 3 and y <= 4) or x = 9"),
        (X.slt(Y), "x <s y"),
    ],
)
def test_a_condition_as_mathematics(condition: Expr, text: str) -> None:
    assert condition_text(condition) == text


def said(text: str, sizes: dict[str, int]) -> bool:
    """The truth of a text, read as mathematics."""
    python = re.sub(r"^(.*) is a multiple of (\d+)$", r"\1 % \2 = 0", text).replace(" mod ", " % ")
    python = re.sub(r"(?<![<>!])=", "==", python)
    exact = {name: Fraction(size) for name, size in sizes.items()}
    return bool(eval(re.sub(r"\b(\d+)\b", r"Fraction(\1)", python), {"Fraction": Fraction}, WORDS | exact))


WORDS: dict[str, Any] = {"ceil": ceil, "floor": floor, "true": True, "false": False}


def test_texts_mean_what_conditions_mean() -> None:
    """At random sizes, for random conditions of which no operation leaves its width."""
    random = Random(5)

    def term(depth: int) -> Expr:
        if depth == 0:
            return random.choice([X, Y, Z, const(random.randrange(1, 9), 32)])
        a, b = term(depth - 1), term(depth - 1)
        low = random.randrange(1, 4)
        return random.choice([a + b, a * b, a << 2, a[31:low].zext(32), (a + 7)[31:3].zext(32), a[2:0].zext(32), a % 5])

    for _ in range(300):
        a, b = term(2), term(2)
        condition = random.choice([a <= b, a < b, a > b, a >= b, (a >= X) & (a <= b), (a < b) | (b < 5), a[1:0] == 0])
        function = compile_terms([X, Y, Z], [condition])
        text = condition_text(condition)
        for _ in range(8):
            sizes = [random.randrange(20) for _ in range(3)]
            assert said(text, dict(zip("xyz", sizes, strict=True))) == function(*sizes)[0], text


def test_the_text_of_an_author_is_a_note() -> None:
    """It may say another thing than the condition, so the domain is printed from the condition."""
    claim = mapping(domain=(("1 <= n <= 1000", (N >= 1) & (N <= 341)), ("m <= 7", M <= 7), ("1 <= m rows", M >= 1)))
    assert claim.size_domain == "1 <= n <= 341 (1 <= n <= 1000), m <= 7, 1 <= m (rows)"
    with pytest.raises(SizeError) as outside:
        claim.require({"n": 900, "m": 2})
    assert str(outside.value) == (
        "Sizes of mapping toy must satisfy: 1 <= n <= 341 (1 <= n <= 1000); given n = 900, m = 2"
    )


def test_a_domain_of_one_condition_needs_its_comma() -> None:
    with pytest.raises(TypeError) as wrong:
        replace(mapping(), domain=("n <= 5", N <= 5))  # type: ignore[arg-type]
    assert str(wrong.value) == (
        'Size domain of toy must be a tuple of pairs of a text and a condition, also where there is one: (("n <= 5", '
        "n <= 5),); not a str: 'n <= 5'"
    )


def test_a_condition_of_the_domain_is_boolean() -> None:
    with pytest.raises(TypeError) as number:
        replace(mapping(), domain=(("n <= 5", N <= 5), ("n is odd", N[0:0])))
    assert str(number.value) == ("Condition 'n is odd' of the size domain of toy must be Boolean; n[0] is of sort bv1")
    with pytest.raises(TypeError, match="not a tuple: \\('n', True\\)"):
        replace(mapping(), domain=(("n", True),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sizes, message",
    [
        (
            {"n": 5000, "m": 1},
            "Sizes of mapping toy must satisfy: 1 <= n <= 255; for input 1x1, sizes_of gives n = 5000, m = 1",
        ),
        (
            {"n": 1 << 16, "m": 1},
            "Size n of mapping toy must fit in 16 bits; for input 1x1, sizes_of gives n = 65536, m = 1",
        ),
    ],
)
def test_sizes_of_must_give_sizes_of_the_domain(sizes: dict[str, int], message: str) -> None:
    claim = replace(mapping(domain=DOMAIN), sizes_of=lambda rows, columns: sizes)
    with pytest.raises(SizeError) as wrong:
        claim.sizes_for((1, 1))
    assert str(wrong.value) == message
    with pytest.raises(SizeError) as none:
        claim.sample_sizes(Random(0))
    assert str(none.value) == f"no sample shape lies in the size domain: {message}"


@pytest.mark.parametrize(
    "given, said",
    [
        (lambda r, c: {"n": r, "m": {}[c]}, "it raises KeyError: 1"),
        (lambda r: {"n": r}, "it raises TypeError: <lambda>() takes 1 positional argument but 2 were given"),
        (lambda r, c: None, "it gives None"),
        (lambda r, c: [r, c], "it gives [1, 1]"),
        (lambda r, c: {}, "it gives {}"),
        (lambda r, c: {"n": r}, "it gives {'n': 1}"),
    ],
)
def test_sizes_of_gives_sizes_or_raises_size_error(given: Any, said: str) -> None:
    with pytest.raises(ValueError) as wrong:
        replace(mapping(), sizes_of=given).sizes_for((1, 1))
    place = f"{__file__}:{given.__code__.co_firstlineno}"
    told = (
        f"sizes_of of mapping toy must give n, m for input 1x1, or raise SizeError; {said} ({place}); correct it there"
    )
    assert str(wrong.value) == told


@pytest.mark.parametrize("shapes", [((1, 2, 3),), ((1, 2), (2,)), ((1, 2.0),)])
def test_sample_shapes_have_each_extent(shapes: Any) -> None:
    with pytest.raises(ValueError) as wrong:
        replace(mapping(), sample_shapes=shapes)
    assert str(wrong.value) == (
        f"sample_shapes of toy must have an integer for each of rows, columns; not {shapes[-1]}; the names of extents "
        "are given by shape_names"
    )


def test_sizes_are_integers() -> None:
    for size in (1.0, "1", None):
        with pytest.raises(SizeError) as wrong:
            mapping().require({"n": 1, "m": size})  # type: ignore[dict-item]
        assert str(wrong.value) == f"Size m of mapping toy must be an integer; given n = 1, m = {size}"


def test_sample_shapes_must_be_given_where_shapes_are_not_of_two_extents() -> None:
    names = ("rows", "inner", "columns")
    claim = replace(mapping(domain=DOMAIN), sizes_of=lambda r, _, c: {"n": r, "m": c}, shape_names=names)
    with pytest.raises(SizeError) as wrong:
        claim.sample_sizes(Random(0))
    assert str(wrong.value) == (
        "mapping toy must have sample_shapes, for its shapes are of rows, inner, columns; give it some small ones, "
        "such as sample_shapes=((1, 2, 3),)"
    )
    assert len(replace(claim, sample_shapes=((1, 2, 3),)).sample_sizes(Random(0))) == 1


def test_a_shape_is_the_inputs_where_there_is_one_input() -> None:
    claim = mapping()
    assert claim.shape_text((4, 6)) == "input 4x6"
    two = replace(claim, inputs=(*claim.inputs, ("dst", "idst")))
    assert two.shape_text((4, 6)) == "shape 4x6"


@pytest.mark.parametrize("name", ["", "../evil", "a/b", "a\\b", ".hidden", "a\n", 3])
def test_files_can_be_named_by_mappings(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"^The name of a mapping must begin with a letter, a digit or _, and be of one line"
    ):
        replace(mapping(), name=name)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"assumptions": "abc"},
            "assumptions of toy must be a tuple of str objects, also where there is one; not 'abc'",
        ),
        ({"sums": (3,)}, "sums of toy must be a tuple of Reduction objects, also where there is one; not (3,)"),
        ({"lemmas": [1]}, "lemmas of toy must be a tuple of Lemma objects, also where there is one; not [1]"),
        ({"abstract": ["f"]}, "abstract of toy must be a frozenset of str objects, also where there is one; not ['f']"),
        (
            {"output": ("y",)},
            "output of toy must pair the name of a tensor of the device's side with that of one of the IR's; "
            "not ('y',)",
        ),
        ({"shape_parameters": frozenset({"Q"})}, "shape_parameters of toy must be among its parameters; Q is not"),
        ({"shape_names": ("a", "a")}, "shape_names of toy must differ; not a, a"),
        (
            {"rows": var("n", bv(8)).zext(32)},
            "Size domain of toy must use only its parameters; 'rows' uses n of sort bv8, another variable",
        ),
    ],
)
def test_fields_of_another_kind_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        replace(mapping(), **fields)
    assert str(raised.value) == message
