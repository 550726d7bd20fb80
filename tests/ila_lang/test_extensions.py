"""Doors: what comes in by entry points and by named modules, and the messages about what cannot."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ila_lang import extensions
from ila_lang.extensions import Door, ExtensionError, use_module


@dataclass(frozen=True)
class Colour:
    name: str


GROUP = "ilaverify.colours"
OFFERS = f"from {__name__} import Colour\n"
Offer = Callable[..., None]


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Puts a distribution with one module, and entry points to it, onto the path."""
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Colour.__module__])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(extensions, "_doors", [])
    monkeypatch.setattr(extensions, "_modules", [])
    for name in [name for name in sys.modules if name.startswith("colours_")]:
        monkeypatch.delitem(sys.modules, name)

    def offered(distribution: str, text: str, **points: str) -> None:
        Path(f"colours_{distribution}.py").write_text(OFFERS + text)
        for name in points and [f"{distribution}-1.2.dist-info"]:
            Path(name).mkdir()
            Path(name, "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
            lines = [f"{point} = {value}\n" for point, value in points.items()]
            Path(name, "entry_points.txt").write_text("".join([f"[{GROUP}]\n", *lines]))

    offered("ilaverify", "GREY = Colour('grey')", grey="colours_ilaverify:GREY")
    return offered


@pytest.fixture
def door(offer: Offer) -> Door[Colour]:
    return Door(GROUP, Colour)


def refused(door: Door[Colour]) -> str:
    with pytest.raises(ExtensionError) as raised:
        door.all()
    return str(raised.value)


def test_all_come_in_the_order_of_their_entry_points(offer: Offer, door: Door[Colour]) -> None:
    offer("other", "A, B = Colour('z'), Colour('y')", a="colours_other:A", z="colours_other:B")
    assert list(door.all()) == ["z", "grey", "y"]
    assert door.all()["grey"] == Colour("grey")
    assert [door.origin(name) for name in ("grey", "y")] == ["ilaverify 1.2", "other 1.2"]
    assert [door.guest(name) for name in ("grey", "y")] == ["", "other 1.2"]


def test_nothing_is_imported_before_it_is_asked_for(offer: Offer, door: Door[Colour]) -> None:
    assert "colours_ilaverify" not in sys.modules
    door.all()
    assert "colours_ilaverify" in sys.modules


def test_two_of_one_name_are_refused(offer: Offer, door: Door[Colour]) -> None:
    offer("other", "A = Colour('grey')", a="colours_other:A")
    assert refused(door) == "ilaverify.colours: both other 1.2 and ilaverify 1.2 offer 'grey'; remove one"


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("A = 7", "colours_other:A", " must be a Colour, not 7"),
        ("A = Colour", "colours_other:B", " cannot be loaded: AttributeError: "),
        ("import no_such_thing", "colours_other:A", " cannot be loaded: ModuleNotFoundError: No module named"),
        ("1 / 0", "colours_other:A", " cannot be loaded: ZeroDivisionError: division by zero"),
    ],
)
def test_what_cannot_be_used_is_named(offer: Offer, door: Door[Colour], text: str, value: str, message: str) -> None:
    offer("other", text, a=value)
    assert refused(door).startswith(f"ilaverify.colours: a = {value} of other 1.2{message}")


def test_an_installation_without_entry_points_is_told(door: Door[Colour]) -> None:
    Path("ilaverify-1.2.dist-info", "entry_points.txt").write_text("")
    assert refused(door) == (
        "ilaverify.colours: ilaverify's own entry points are missing; install it (pip install -e .)"
    )


def test_a_module_in_use_offers_its_values(offer: Offer, door: Door[Colour], monkeypatch: pytest.MonkeyPatch) -> None:
    offer("mine", "BLUE = ALSO_BLUE = Colour('blue')\nRED = Colour('red')")
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(Path.cwd())])
    use_module("colours_mine")
    use_module("colours_mine")
    assert sys.path[-1] == str(Path.cwd())
    sys.path.insert(0, str(Path.cwd()))  # for the distribution
    assert list(door.all()) == ["grey", "blue", "red"]
    assert door.origin("red") == "module colours_mine"


def test_a_module_with_a_name_that_is_taken_is_refused(offer: Offer, door: Door[Colour]) -> None:
    offer("mine", "BLUE = Colour('grey')")
    use_module("colours_mine")
    assert refused(door) == "ilaverify.colours: both ilaverify 1.2 and module colours_mine offer 'grey'; remove one"


def test_one_object_may_come_in_twice(offer: Offer, door: Door[Colour]) -> None:
    use_module("colours_ilaverify")
    assert list(door.all()) == ["grey"]
    assert door.origin("grey") == "ilaverify 1.2"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "colours_absent",
            "cannot be imported: ModuleNotFoundError: No module named 'colours_absent'; "
            "it must be installed, on PYTHONPATH, or in the folder HERE",
        ),
        ("", "cannot be imported: ValueError: Empty module name"),
        ("colours_empty", "must have a value such as a Target, a Method or a FrontEnd; it has none"),
    ],
)
def test_a_module_that_offers_nothing_is_refused(offer: Offer, door: Door[Colour], name: str, message: str) -> None:
    offer("empty", "")
    with pytest.raises(ExtensionError) as raised:
        use_module(name)
    assert str(raised.value) == f"module {name!r} {message}".replace("HERE", os.getcwd())
    assert list(door.all()) == ["grey"]
