"""Where an import may lead: candidates for the path of the file behind it, language by language."""

import posixpath
from typing import NamedTuple

_JS_SUFFIXES = ("", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".vue", ".svelte", ".json", ".d.ts")
_JS_INDEX = tuple(f"/index{suffix}" for suffix in (".ts", ".tsx", ".js", ".jsx", ".mjs"))
_JVM = {
    "java": (".java", ".kt"),
    "kotlin": (".kt", ".java"),
    "scala": (".scala", ".java"),
    "groovy": (".groovy", ".java"),
}


class Candidate(NamedTuple):
    """A path that an import may mean."""

    path: str
    """With forward slashes, normalised."""
    is_exact: bool
    """The whole path; otherwise its end (``a/b.py`` for ``src/a/b.py``)."""
    is_folder: bool = False
    """Every file directly in this folder."""


def normalise(path: str) -> str:
    """Forward slashes, no ``.`` and no ``..`` where they can be resolved."""
    return posixpath.normpath(path.replace("\\", "/")) if path else ""


def candidates(
    language: str | None, path: str, module: str, *, names: tuple[str, ...] = (), level: int = 0
) -> list[Candidate]:
    """Paths that an import may mean, the likeliest first.

    Args:
        language: Of the importing file.
        path: Of the importing file.
        module: As in `outline.Import`.
        names: What is taken from it, which may be modules themselves (Python).
        level: Leading dots (Python).
    """
    folder = posixpath.dirname(normalise(path))
    match language:
        case "python":
            return _python(folder, module, names, level)
        case "javascript" | "typescript" | "tsx" | "vue" | "svelte":
            return _javascript(folder, module)
        case "java" | "kotlin" | "scala" | "groovy":
            return _jvm(module, _JVM[language])
        case "go":
            return [
                Candidate("/".join(module.split("/")[at:]), False, True)
                for at in range(module.count("/") + 1)
            ]
        case "rust":
            return _rust(folder, path, module)
        case "lua":
            return [Candidate(module.replace(".", "/") + ".lua", False)]
        case _:
            return _file(folder, module)


def _python(folder: str, module: str, names: tuple[str, ...], level: int) -> list[Candidate]:
    parts = module.replace(".", "/")
    root, is_exact = parts, level > 0
    if is_exact:
        base = folder
        for _ in range(level - 1):
            base = posixpath.dirname(base)
        root = posixpath.join(base, parts) if parts else base
    found: list[Candidate] = []
    for stem in (*(posixpath.join(root, name) for name in names), *([root] if root else ())):
        found += [Candidate(f"{stem}.py", is_exact), Candidate(f"{stem}/__init__.py", is_exact)]
    if is_exact and not root:
        found.append(Candidate("__init__.py", True))
    if not level and "/" not in parts and parts:  # a script beside it
        found.insert(0, Candidate(posixpath.join(folder, f"{parts}.py"), True))
    return found


def _javascript(folder: str, module: str) -> list[Candidate]:
    if module.startswith("."):
        base, is_exact = normalise(posixpath.join(folder, module)), True
    elif module.startswith(("@/", "~/")):
        base, is_exact = module[2:], False
    elif module.startswith("/"):
        base, is_exact = module[1:], False
    else:
        return []
    found = [Candidate(base + suffix, is_exact) for suffix in (*_JS_SUFFIXES, *_JS_INDEX)]
    if base.endswith((".js", ".jsx", ".mjs")):  # TypeScript writes the name that the compiled file will have
        stem = base.rsplit(".", 1)[0]
        found += [Candidate(stem + suffix, is_exact) for suffix in (".ts", ".tsx", ".mts")]
    return found


def _jvm(module: str, suffixes: tuple[str, ...]) -> list[Candidate]:
    parts = module.rstrip(".*").rstrip(".").split(".")
    if module.endswith("*"):
        return [Candidate("/".join(parts), False, True)]
    found = []
    for end in (len(parts), len(parts) - 1):  # a static import names a member of the class
        found += [Candidate("/".join(parts[:end]) + suffix, False) for suffix in suffixes if end > 0]
    return found


def _rust(folder: str, path: str, module: str) -> list[Candidate]:
    parts = [part for part in module.split("::") if part]
    if not parts:
        return []
    name = posixpath.basename(normalise(path))
    own = (
        folder
        if name in ("mod.rs", "lib.rs", "main.rs")
        else posixpath.join(folder, name.removesuffix(".rs"))
    )
    head = parts.pop(0)
    if head == "self":
        base, is_exact = own, True
    elif head == "super":
        base, is_exact = (folder if own != folder else posixpath.dirname(folder)), True
    elif head == "crate":
        base, is_exact = "src", False
    else:
        return []
    found: list[Candidate] = []
    for end in range(len(parts), 0, -1):
        stem = posixpath.join(base, *parts[:end])
        found += [Candidate(f"{stem}.rs", is_exact), Candidate(f"{stem}/mod.rs", is_exact)]
    return found


def _file(folder: str, module: str) -> list[Candidate]:
    """Languages that name files: C, Ruby, PHP, shell, CSS."""
    beside = normalise(posixpath.join(folder, module))
    found = [Candidate(beside, True)]
    if "." not in posixpath.basename(module):
        found.append(Candidate(f"{beside}.rb", True))
        found.append(Candidate(f"{module}.rb", False))
    if not module.startswith("."):
        found.append(Candidate(normalise(module), False))
    return found
