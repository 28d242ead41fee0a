"""Source files of modules that are not jostle's: what counts as their code, and which others they import."""

from __future__ import annotations

import ast
import io
import sysconfig
import tokenize
from pathlib import Path

_INSTALLED = ("site-packages", "dist-packages")


def is_installed(folder: Path) -> bool:
    """Return whether a folder is of installed packages or of Python itself, whose files have a version."""
    standard = Path(sysconfig.get_paths()["stdlib"]).resolve()
    return bool({*_INSTALLED} & {*folder.parts}) or folder == standard or standard in folder.parents


def code_of(path: Path) -> bytes:
    """Return the content of a file; of Python without comments and empty lines, which change no result."""
    content = path.read_bytes()
    if path.suffix != ".py":
        return content
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
        return without_comments(text).encode()
    except (SyntaxError, ValueError, LookupError, tokenize.TokenError):
        return content


def without_comments(text: str) -> str:
    """Return Python code without its comments and the lines that are empty without them.

    >>> without_comments("x = '#'  # a comment\\n\\n# another\\ny = 1\\n")
    "x = '#'\\ny = 1\\n"
    """
    lines = text.splitlines(keepends=True)
    empty: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        number, column = token.start[0] - 1, token.start[1]
        if token.type == tokenize.COMMENT:
            lines[number] = lines[number][:column].rstrip() + "\n"
        if token.type == tokenize.NL and not lines[number].strip():
            empty.add(number)
    return "".join(line for number, line in enumerate(lines) if number not in empty)


def imported_files(path: Path, root: Path) -> list[Path]:
    """Return a Python file and those below a folder that it imports, directly or through others, in order."""
    found, waiting = {path}, [path]
    while waiting:
        one = waiting.pop()
        for other in _imports(one, root) - found:
            found.add(other)
            waiting.append(other)
    return sorted(found)


def _imports(path: Path, root: Path) -> set[Path]:
    """Return the files below a folder that a file names in its import statements, wherever in it they stand."""
    if path.suffix != ".py":
        return set()
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return set()
    names: set[str] = set()
    package = path.parent.relative_to(root).parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*start, *filter(None, [node.module])])
            names |= {base, *(f"{base}.{alias.name}" if base else alias.name for alias in node.names)}
    files: set[Path] = set()
    for name in filter(None, names):
        parts = name.split(".")
        for count in range(1, len(parts) + 1):  # a package is imported before what is in it
            at = root.joinpath(*parts[:count])
            files |= {file.resolve() for file in (at.with_suffix(".py"), at / "__init__.py") if file.is_file()}
    return {file for file in files if root in file.parents}
