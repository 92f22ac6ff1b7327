import pytest

from sensorium.core.types import Modality
from sensorium.features.extractors.base import Extractor, Features
from sensorium.features.extractors.code_structure import CodeStructure, count_lines
from sensorium.features.extractors.outline import outline_of
from sensorium.observations.base import Part
from sensorium.observations.code import read_code
from sensorium.observations.values import CellValue, TextValue

SOURCE = '''"""Doc."""
import os
from .near import thing

# comment
class A:
    def m(self, x):
        if x and os:
            return 1
        for y in x:
            print(y)
        return 2


def f():
    pass
'''


def extract(text: str, path: str) -> Features:
    return CodeStructure()(read_code(text, part_id="p", path=path))[0]


def test_python() -> None:
    found = extract(SOURCE, "a.py")
    data = found.data
    assert data["language"] == "python"
    assert data["lines"] == {"total": 16, "code": 11, "comment": 2, "blank": 3}
    # 1 + if + and + for
    assert data["functions"][0] == {
        "name": "A.m",
        "line": 7,
        "end_line": 12,
        "complexity": 4,
        "parameters": 2,
    }
    assert data["functions"][1]["complexity"] == 1
    assert data["classes"] == [{"name": "A", "line": 6, "end_line": 12}]
    assert data["imports"] == [{"module": "os", "line": 2}, {"module": ".near", "line": 3}]
    assert data["complexity"] == {"max": 4, "mean": 2.5}
    assert found.summary == "11 lines of code, 1 class, 2 functions"
    assert Features.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    ("language", "text", "functions", "classes", "imports"),
    [
        (
            "javascript",
            'import a from "./a.js";\nconst b = require("./b");\nexport function f() {}\nclass A { m() {} }\n'
            'const g = () => 1;\nimport("./dyn");\nexport {q} from "./q";',
            ["f", "A.m", "g"],
            ["A"],
            ["./a.js", "./b", "./dyn", "./q"],
        ),
        (
            "typescript",
            'import type {X} from "./x";\ninterface I {}\nclass A { private m(): void {} }\nenum E {A}',
            ["A.m"],
            ["I", "A", "E"],
            ["./x"],
        ),
        (
            "java",
            "import java.util.List;\nclass A { int f() { return 1; } A() {} }",
            ["A.f", "A.A"],
            ["A"],
            ["java.util.List"],
        ),
        (
            "go",
            'package m\nimport (\n"fmt"\nx "a/b"\n)\ntype S struct {}\nfunc (s *S) M() {}\nfunc main() {}',
            ["M", "main"],
            ["S"],
            ["fmt", "a/b"],
        ),
        (
            "rust",
            "use std::io;\nmod foo;\nstruct S;\nimpl S { fn m(&self) {} }\nfn f() {}",
            ["m", "f"],
            ["S"],
            ["std::io", "self::foo"],
        ),
        (
            "c",
            '#include "a.h"\nstruct S { int a; };\nstruct S s;\nstatic void *g(void) { return 0; }',
            ["g"],
            ["S"],
            ["a.h"],
        ),
        (
            "cpp",
            "#include <a>\nclass A : B { public: int m() { return 1; } };\nint A::k() { return 1; }",
            ["A.m", "k"],
            ["A"],
            ["a"],
        ),
        (
            "ruby",
            'require "a"\nrequire_relative "b"\nclass A\n def m\n 1\n end\nend',
            ["A.m"],
            ["A"],
            ["a", "./b"],
        ),
        ("bash", "source a.sh\nf() { echo; }", ["f"], [], ["a.sh"]),
    ],
)
def test_outlines(
    language: str, text: str, functions: list[str], classes: list[str], imports: list[str]
) -> None:
    outline = outline_of(text, language)
    assert outline is not None
    assert [item.name for item in outline.functions] == functions
    assert [item.name for item in outline.classes] == classes
    assert [item.module for item in outline.imports] == imports


def test_python_that_does_not_parse_has_an_outline() -> None:
    outline = outline_of("import os\ndef good():\n    pass\nx = = 1\ndef more():\n    pass\n", "python")
    assert outline is not None
    assert "good" in [item.name for item in outline.functions]
    assert [item.module for item in outline.imports] == ["os"]


def test_complexity_of_other_languages() -> None:
    data = extract("int f(int x) { if (x) { return 1; } while (x) { x--; } return x ? 1 : 2; }\n", "a.c").data
    assert data["functions"][0]["complexity"] == 4


def test_unknown_languages_have_lines_only() -> None:
    found = extract("some words\n\nmore\n", "a.unknown")
    assert found.data["lines"] == {"total": 3, "code": 2, "comment": 0, "blank": 1}
    assert found.data["functions"] == []
    assert found.data["complexity"] is None
    assert found.unavailable is None


def test_it_keeps_the_protocol_and_takes_cells() -> None:
    extractor = CodeStructure()
    assert isinstance(extractor, Extractor)
    cell = Part(
        id="c", modality=Modality.NOTEBOOK, value=CellValue(index=0, cell_type="code", source="def f(): pass")
    )
    text = Part(id="t", modality=Modality.TEXT, value=TextValue(text="def f(): pass"))
    assert extractor.accepts(cell)
    assert not extractor.accepts(text)
    assert extractor([cell])[0].data["functions"][0]["name"] == "f"


@pytest.mark.parametrize("path", ["a.py", "a.c", "a.js", "a.go", "a.rs", "a.rb", "a.cpp", "a.kt", "a.lua"])
@pytest.mark.parametrize(
    "text", ["(" * 3_000, "'", '"""', "\\\n" * 50, "if " * 500, "{" * 2_000, "#if 0\n", "\u2400é"]
)
def test_hostile_code_is_no_crash(path: str, text: str) -> None:
    assert extract(text, path).unavailable is None


def test_lines_add_up() -> None:
    for text in ("", "\n", "a", "a\n", "# c\n\n'''d\n\nd'''\nx = 1"):
        lines = count_lines(text, "python")
        assert lines["total"] == lines["code"] + lines["comment"] + lines["blank"]
        assert lines["total"] == len(text.splitlines())


def test_code_that_nests_without_end_is_not_measured_and_nothing_is_said(
    capfd: pytest.CaptureFixture[str],
) -> None:
    (part,) = read_code("function f( { var x = ;\n" * 3_000, part_id="p", path="a.js")
    (found,) = CodeStructure()([part])
    assert found.data["complexity"] is None
    assert capfd.readouterr() == ("", "")


def test_one_line_is_one_line() -> None:
    assert extract("x = 1\n", "a.py").summary == "1 line of code"
