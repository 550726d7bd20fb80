"""Claims say what their sizes are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ilaverify.catalogue import find_mapping, mappings
from rewrites.mappings.flexasr.pooling import pooling_mapping

NAMES = [n for n in mappings() if n.startswith(("flexasr", "vta"))]


@pytest.mark.parametrize("name", NAMES)
def test_every_size_has_a_text(name: str) -> None:
    mapping = find_mapping(name)
    assert set(mapping.parameter_texts) == set(mapping.parameters)
    assert all(f"{n}: {text}" in mapping.size_domain for n, text in mapping.parameter_texts.items())


def test_the_domain_in_words() -> None:
    mapping = pooling_mapping("max")
    assert mapping.size_domain == (
        "T is a multiple of 2, 2 <= T <= 65534, 1 <= nv <= 255, base <= 65535, entry <= 3, base + "
        "16*ceil(T/16)*nv <= 65536 (vectors) (T: rows, nv: vectors of 16 columns, base: first vector of the data in "
        "the large buffer, entry: entry of the large buffer's manager for the data)"
    )
    assert replace(mapping, parameter_texts={}).size_domain.endswith("<= 65536 (vectors)")


def test_texts_are_about_parameters() -> None:
    with pytest.raises(ValueError) as unknown:
        replace(pooling_mapping("max"), parameter_texts={"T": "rows", "rows": "rows", "n": "n"})
    assert str(unknown.value) == "Texts of flexasr_maxpool must be about its parameters, not rows, n"
