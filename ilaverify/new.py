"""New packages for the doors: an accelerator that proves, simulates and compiles as it comes.

The text of the package stands in ``templates``, with places for its name; ``examples/plugin`` is the result for the
name tiny_gemm.
"""

from __future__ import annotations

import keyword
import re
import shutil
import tempfile
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from ilaverify.catalogue import models, targets
from ilaverify.errors import UsageError
from rewrites.claims.names import slug

_PLACE, _RULE = "@name@", "@rule@"
"""Where the name goes, and the name as it stands in names of rules."""
_MARK = ".in"
"""The suffix of templates' names, by which they are not mistaken for modules of ilaverify."""
_ABOVE = ("README.md", "pyproject.toml")
"""The files that stand next to the folder of modules."""


def accelerator_files(name: str) -> dict[str, str]:
    """The texts of the package of an accelerator, by path."""
    texts = {}
    for template in sorted(files(__package__).joinpath("templates").iterdir(), key=lambda file: file.name):
        path = template.name.removesuffix(_MARK)
        text = template.read_text(encoding="utf-8").replace(_PLACE, name).replace(_RULE, slug(name))
        texts[path if path in _ABOVE else f"{name}/{path}"] = text
    return texts


def write_accelerator(name: str, directory: Path) -> list[Path]:
    """Writes the package of an accelerator into a new or empty folder; the files, or none where one cannot be written.

    Raises UsageError where the name or the folder cannot be used, and OSError where a file cannot be written.
    """
    _require_new(name)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        what = "has files in it" if directory.is_dir() else "is a file"
        raise UsageError(f"the folder must be new or empty, and {directory} {what}; name another with -o")
    created = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=directory, prefix=".") as temporary:
            written = accelerator_files(name)
            for path, text in written.items():
                file = Path(temporary, path)
                file.parent.mkdir(exist_ok=True)
                file.write_text(text, encoding="utf-8", newline="\n")
            for part in sorted(Path(temporary).iterdir()):
                part.rename(directory / part.name)
    except BaseException:
        for top in {path.partition("/")[0] for path in accelerator_files(name)}:
            shutil.rmtree(directory / top) if (directory / top).is_dir() else (directory / top).unlink(missing_ok=True)
        if created:
            directory.rmdir()
        raise
    return [directory / path for path in written]


def _require_new(name: str) -> None:
    if keyword.iskeyword(name):
        raise UsageError(f"NAME must be a name for a Python package, and {name} is a keyword of Python; take my_{name}")
    if re.fullmatch("[a-z][a-z0-9_]{0,39}", name) is None:
        raise UsageError(
            f"NAME must be a name for a Python package, of at most 40 of a-z, 0-9 and _, not '{name:.60}'; for example "
            "my_gemm"
        )
    for what, known in (("target", targets()), ("model", models())):
        if name in known:
            raise UsageError(f"NAME must be new, and there is a {what} {name} already; choose another")
    spec = find_spec(name)
    if spec is not None and spec.origin is not None:  # others are mere folders
        raise UsageError(f"NAME must be new, and there is a Python module {name} already; choose another")
