import pytest

from sensorium.features.extractors.base import Extractor
from sensorium.features.extractors.dependencies import Dependencies, import_graph, related_files
from sensorium.features.extractors.import_paths import normalise
from sensorium.observations.base import Part
from sensorium.observations.code import read_code


def parts_of(files: dict[str, str]) -> list[Part]:
    return [read_code(text, part_id=path, path=path)[0] for path, text in files.items()]


PYTHON = {
    "src/app/__init__.py": "",
    "src/app/main.py": "import os, numpy\nfrom app.core import load\n"
    "from . import extra\nfrom .core.load import read\n",
    "src/app/extra.py": "from ..app import main\n",
    "src/app/core/__init__.py": "from .load import read",
    "src/app/core/load.py": "import json\n",
    "src/lone.py": "x = 1",
    "tests/test_load.py": "from app.core.load import read\n",
}


def test_python_imports_are_resolved() -> None:
    graph = import_graph(parts_of(PYTHON))
    assert graph.imports["src/app/main.py"] == (
        "src/app/core/load.py",
        "src/app/core/__init__.py",
        "src/app/extra.py",
        "src/app/__init__.py",
    )
    assert graph.external["src/app/main.py"] == ("os", "numpy")
    assert graph.imports["src/app/core/__init__.py"] == ("src/app/core/load.py",)
    assert graph.imports["src/app/extra.py"] == ("src/app/main.py", "src/app/__init__.py")
    assert graph.imports["tests/test_load.py"] == ("src/app/core/load.py",)
    assert graph.imported_by("src/app/main.py") == ("src/app/extra.py",)


@pytest.mark.parametrize(
    ("files", "origin", "targets"),
    [
        (
            {
                "web/a.ts": 'import {x} from "./b";\nimport y from "./lib";\n'
                'import z from "@/c.js";\nimport "react";',
                "web/b.tsx": "",
                "web/lib/index.js": "",
                "src/c.ts": "",
            },
            "web/a.ts",
            ("web/b.tsx", "web/lib/index.js", "src/c.ts"),
        ),
        ({"a.js": 'const b = require("../b")', "b.js": ""}, "a.js", ()),
        ({"x/a.js": 'const b = require("../b")', "b.js": ""}, "x/a.js", ("b.js",)),
        (
            {
                "src/com/acme/A.java": "import com.acme.util.B;\nimport java.util.List;\n",
                "src/com/acme/util/B.java": "",
            },
            "src/com/acme/A.java",
            ("src/com/acme/util/B.java",),
        ),
        (
            {
                "m/main.go": 'package main\nimport "acme.org/m/store"\n',
                "m/store/a.go": "",
                "m/store/b.go": "",
            },
            "m/main.go",
            ("m/store/a.go", "m/store/b.go"),
        ),
        (
            {"src/main.rs": "mod foo;\nuse crate::bar::Thing;\n", "src/foo.rs": "", "src/bar/mod.rs": ""},
            "src/main.rs",
            ("src/foo.rs", "src/bar/mod.rs"),
        ),
        (
            {"src/a.c": '#include "a.h"\n#include "x/y.h"\n', "src/a.h": "", "include/x/y.h": ""},
            "src/a.c",
            ("src/a.h", "include/x/y.h"),
        ),
        ({"lib/a.rb": 'require_relative "b"', "lib/b.rb": ""}, "lib/a.rb", ("lib/b.rb",)),
    ],
)
def test_other_languages(files: dict[str, str], origin: str, targets: tuple[str, ...]) -> None:
    assert import_graph(parts_of(files)).imports[origin] == targets


def test_of_equal_names_the_nearer_file_is_meant() -> None:
    files = {"a/x/main.py": "import util.tools", "a/x/util/tools.py": "", "b/x/util/tools.py": ""}
    assert import_graph(parts_of(files)).imports["a/x/main.py"] == ("a/x/util/tools.py",)


def test_known_features_are_used() -> None:
    parts = parts_of(PYTHON)
    found = {features.part_id: features for features in Dependencies()(parts)}
    assert import_graph(parts, found) == import_graph(parts)
    assert found["src/app/core/load.py"].summary == "imports json"
    changed = found | {
        "src/app/core/load.py": found["tests/test_load.py"].model_copy(update={"part_id": "x"})
    }
    assert import_graph(parts, changed).imports["src/app/core/load.py"] == ()


def test_related_files_are_ranked() -> None:
    graph = import_graph(parts_of(PYTHON))
    ranked = related_files(graph, ["tests/test_load.py"])
    assert [(item.part_id, item.distance) for item in ranked] == [
        ("tests/test_load.py", 0.0),
        ("src/app/core/load.py", 1.0),
        ("src/app/core/__init__.py", 3.0),
        ("src/app/main.py", 3.0),
        ("src/app/__init__.py", 4.0),
        ("src/app/extra.py", 4.0),
    ]
    assert ranked[0].why == "it fails"
    assert ranked[1].why in ("imported by tests/test_load.py", "tested by tests/test_load.py")
    assert related_files(graph, ["tests/test_load.py"], limit=2) == ranked[:2]
    assert related_files(graph, ["nowhere"]) == []


def test_a_test_is_near_what_it_tests_by_name() -> None:
    graph = import_graph(
        parts_of({"a/parse.go": "package a", "a/parse_test.go": "package a", "b/other.go": "package b"})
    )
    assert [item.part_id for item in related_files(graph, ["a/parse_test.go"])] == [
        "a/parse_test.go",
        "a/parse.go",
    ]


def test_it_keeps_the_protocol() -> None:
    assert isinstance(Dependencies(), Extractor)


def test_paths_are_normalised() -> None:
    assert normalise("a\\b\\..\\c.py") == "a/c.py"
    assert normalise("") == ""
