"""Who imports whom among the files of an observation, and which files are close to a failing one."""

import heapq
import posixpath
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sensorium.features.extractors.base import Features
from sensorium.features.extractors.import_paths import Candidate, candidates, normalise
from sensorium.features.extractors.outline import outline_of
from sensorium.features.extractors.per_part import Found, extract_each
from sensorium.observations.base import Part
from sensorium.observations.languages import canonical_language
from sensorium.observations.values import CodeValue

IMPORTS_COST = 1.0
"""Distance from a file to one that it imports: faults come from there."""
IMPORTED_COST = 2.0
"""Distance from a file to one that imports it."""
TEST_COST = 1.0
"""Distance between ``x.py`` and ``test_x.py``."""


class Dependencies:
    """Finds what each piece of code imports.

    `Features.data` holds ``language``, ``path`` and ``imports``: ``module``, ``line``, ``names``,
    ``level``. It depends on that part alone, so it may be cached; `import_graph` resolves imports among
    the parts of an observation.
    """

    name, version = "dependencies", "1"

    def accepts(self, part: Part) -> bool:
        """Code parts and code cells."""
        return part.code is not None

    def __call__(self, parts: Sequence[Part]) -> Sequence[Features]:
        """Find the imports of each part; none in a language without a parser."""
        return extract_each(self, parts, _imports)


class ImportGraph(NamedTuple):
    """Who imports whom."""

    imports: Mapping[str, tuple[str, ...]]
    """Part id -> ids of the parts that it imports, in the order of its imports."""
    external: Mapping[str, tuple[str, ...]]
    """Part id -> modules that are in no part."""
    paths: Mapping[str, str]
    """Part id -> path of its file."""

    def imported_by(self, part_id: str) -> tuple[str, ...]:
        """Ids of the parts that import a part."""
        return tuple(other for other, targets in self.imports.items() if part_id in targets)


class Related(NamedTuple):
    """A file near a failing one."""

    part_id: str
    distance: float
    """0 for a failing file itself; each import adds 1, each step to who imports it 2."""
    why: str
    """e.g. ``imported by src/app.py``."""


def import_graph(parts: Iterable[Part], found: Mapping[str, Features] | None = None) -> ImportGraph:
    """Resolve the imports among the code parts of an observation.

    Args:
        parts: All parts; those without code are passed over.
        found: Part id -> result of `Dependencies`, where it is known; the rest is extracted here.
    """
    code = [part for part in parts if part.code is not None]
    known = {part_id: features for part_id, features in (found or {}).items() if features.unavailable is None}
    missing = [part for part in code if part.id not in known]
    known |= {features.part_id: features for features in Dependencies()(missing)}
    paths = {part.id: _path(part) for part in code}
    index = _Index(paths)
    imports: dict[str, tuple[str, ...]] = {}
    external: dict[str, tuple[str, ...]] = {}
    for part in code:
        targets: dict[str, None] = {}
        outside: dict[str, None] = {}
        data = known[part.id].data
        for item in data.get("imports", ()):
            resolved = _resolve(index, data.get("language"), paths[part.id], item)
            targets |= dict.fromkeys(target for target in resolved if target != part.id)
            if not resolved and item["module"]:
                outside.setdefault(item["module"])
        imports[part.id] = tuple(targets)
        external[part.id] = tuple(outside)
    return ImportGraph(imports, external, paths)


def related_files(graph: ImportGraph, failing: Collection[str], *, limit: int | None = None) -> list[Related]:
    """Rank files by their distance from failing ones, the nearest first.

    Args:
        graph: Who imports whom.
        failing: Ids of the parts that fail (by fault, stack trace, test).
        limit: Most files that are returned.

    Returns:
        Failing files first (distance 0), then those that can be reached from them through imports in either
        direction or as test and tested; files that cannot are left out.
    """
    edges = _edges(graph)
    best: dict[str, float] = {}
    ranked: list[Related] = []
    queue = [(0.0, part_id, "it fails") for part_id in sorted(failing) if part_id in graph.paths]
    heapq.heapify(queue)
    while queue:
        distance, part_id, why = heapq.heappop(queue)
        if part_id in best:
            continue
        best[part_id] = distance
        ranked.append(Related(part_id, distance, why))
        for target, cost, said in edges.get(part_id, ()):
            if target not in best:
                heapq.heappush(queue, (distance + cost, target, f"{said} {graph.paths[part_id]}"))
    return ranked[:limit]


def _edges(graph: ImportGraph) -> dict[str, list[tuple[str, float, str]]]:
    edges: dict[str, list[tuple[str, float, str]]] = {part_id: [] for part_id in graph.paths}
    for part_id, targets in graph.imports.items():
        for target in targets:
            edges[part_id].append((target, IMPORTS_COST, "imported by"))
            edges[target].append((part_id, IMPORTED_COST, "imports"))
    stems: dict[str, list[str]] = {}
    for part_id, path in graph.paths.items():
        stems.setdefault(_stem(path), []).append(part_id)
    for part_id, path in graph.paths.items():
        tested = _tested(_stem(path))
        for other in stems.get(tested, ()) if tested else ():
            edges[part_id].append((other, TEST_COST, "tested by"))
            edges[other].append((part_id, TEST_COST, "tests"))
    return edges


def _stem(path: str) -> str:
    return posixpath.basename(path).rsplit(".", 1)[0]


def _tested(stem: str) -> str | None:
    """``x`` for ``test_x``, ``x_test``, ``x.test``, ``x.spec``, ``XTest``."""
    if stem.startswith("test_"):
        return stem[5:]
    for suffix in ("_test", ".test", ".spec", "_spec", "Tests", "Test"):
        if stem.endswith(suffix) and len(stem) > len(suffix):
            return stem.removesuffix(suffix)
    return None


def _path(part: Part) -> str:
    value = part.value
    return normalise((value.path if isinstance(value, CodeValue) else None) or part.id)


def _imports(part: Part) -> Found:
    text, language = part.code or ("", None)
    language = canonical_language(language)
    outline = outline_of(text, language)
    imports: list[dict[str, Any]] = []
    for item in outline.imports if outline is not None else ():
        imports.append({**item._asdict(), "names": list(item.names)})
    modules = list(dict.fromkeys("." * item["level"] + item["module"] for item in imports))
    shown = ", ".join(modules[:8]) + (f" and {len(modules) - 8} more" if len(modules) > 8 else "")
    data = {
        "language": language,
        "path": part.value.path if isinstance(part.value, CodeValue) else None,
        "imports": imports,
    }
    return Found(data=data, summary=f"imports {shown}" if modules else "")


class _Index:
    """Finds parts by path: whole, by its end, or by folder."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self.exact: dict[str, str] = {}
        self.by_name: dict[str, list[tuple[str, str]]] = {}
        self.by_folder: dict[str, list[tuple[str, str]]] = {}
        for part_id, path in paths.items():
            self.exact.setdefault(path, part_id)
            self.by_name.setdefault(posixpath.basename(path), []).append((path, part_id))
            folder = posixpath.dirname(path)
            self.by_folder.setdefault(posixpath.basename(folder), []).append((folder, part_id))

    def find(self, candidate: Candidate, origin: str) -> list[str]:
        """Parts that a candidate means; of several ends the one nearest to the importing file."""
        path = candidate.path
        if candidate.is_folder:
            inside = self.by_folder.get(posixpath.basename(path), ())
            return [part_id for folder, part_id in inside if _ends(folder, path)]
        if candidate.is_exact:
            found = self.exact.get(path)
            return [found] if found is not None else []
        ends = [
            (p, part_id) for p, part_id in self.by_name.get(posixpath.basename(path), ()) if _ends(p, path)
        ]
        if not ends:
            return []
        return [max(ends, key=lambda pair: (_shared(pair[0], origin), -len(pair[0])))[1]]


def _ends(path: str, end: str) -> bool:
    return path == end or path.endswith("/" + end)


def _shared(first: str, second: str) -> int:
    """Number of leading folders that two paths share."""
    count = 0
    for a, b in zip(first.split("/"), second.split("/"), strict=False):
        if a != b:
            break
        count += 1
    return count


def _resolve(index: _Index, language: str | None, path: str, item: Mapping[str, Any]) -> list[str]:
    names = tuple(item.get("names", ()))
    options = candidates(language, path, item["module"], names=names, level=item.get("level", 0))
    found: dict[str, None] = {}
    for option in options:
        hits = index.find(option, path)
        found |= dict.fromkeys(hits)
        if hits and not names:  # of one name only one file is meant
            break
    return list(found)
