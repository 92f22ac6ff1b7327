import threading

import pytest

from sensorium.observations.code import find_faults
from sensorium.observations.languages import (
    MAX_PARSED,
    canonical_language,
    detect_language,
    is_python,
    language_of_path,
    parse_code,
    parse_python,
)


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("src/a.py", "python"),
        ("C:\\x\\App.TSX", "tsx"),
        ("deploy/Dockerfile", "dockerfile"),
        ("Dockerfile.dev", "dockerfile"),
        ("Makefile", "make"),
        ("a.hpp", "cpp"),
        ("README", None),
        ("x.unknown", None),
        (None, None),
    ],
)
def test_paths(path: str | None, language: str | None) -> None:
    assert language_of_path(path) == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("#!/usr/bin/env python3\nprint(1)", "python"),
        ("#!/usr/bin/env -S node --x\n", "javascript"),
        ("#!/bin/sh\n", "bash"),
        ("#!/usr/bin/python3.11\n", "python"),
        ("import os\n\ndef f(x):\n    return x\n", "python"),
        ("package main\n\nfunc main() {}\n", "go"),
        ("use std::io;\nfn main() {}\n", "rust"),
        ("#include <stdio.h>\nint main(void) { return 0; }\n", "c"),
        ("#include <vector>\nstd::vector<int> v;\n", "cpp"),
        ("const x = 1;\nfunction f() {}\n", "javascript"),
        ("public class A { }\n", "java"),
        ("SELECT a FROM b WHERE c;\n", "sql"),
        ("<?php echo 1;", "php"),
        ("hello there", None),
        ("", None),
    ],
)
def test_content(text: str, language: str | None) -> None:
    assert detect_language(text) == language


def test_suffixes_of_two_languages_are_told_by_content() -> None:
    assert detect_language("int f(void);\n", path="a.h") == "c"
    assert detect_language("namespace a {\nclass B;\n}\n", path="a.h") == "cpp"
    assert detect_language("% plots\nx = 1;\n", path="a.m") == "matlab"
    assert detect_language("#import <A.h>\n", path="a.m") == "objc"


def test_names_of_languages() -> None:
    assert canonical_language("IPython") == "python"
    assert canonical_language("C++") == "cpp"
    assert canonical_language(" ") is None
    assert canonical_language("klingon") == "klingon"


def test_parsing_what_cannot_be_parsed_gives_nothing() -> None:
    assert parse_code("x", None) is None
    assert parse_code("x", "klingon") is None
    assert parse_code("x" * (MAX_PARSED + 1), "c") is None


def test_doubtful_python_raises_no_warning() -> None:
    assert parse_python("x = '\\d'").body


def test_threads_have_their_own_parsers() -> None:
    kinds: list[str] = []

    def parse() -> None:
        for _ in range(20):
            tree = parse_code("int f(void) { return 1; }", "c")
            assert tree is not None
            kinds.append(tree.root_node.type)

    threads = [threading.Thread(target=parse) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kinds == ["translation_unit"] * 80


@pytest.mark.parametrize(
    ("text", "is_fine"),
    [("x = 1\n", True), ("x = '\\d'", True), ("x =", False), ("nonlocal a", False), ("a\0", False)],
)
def test_what_python_takes(text: str, is_fine: bool) -> None:
    assert is_python(text) is is_fine


def test_what_parses_has_no_fault_though_it_cannot_be_compiled() -> None:
    assert find_faults("nonlocal a\n", "python") == ()
    assert find_faults("x = (\n", "python")[0].message.startswith("SyntaxError")
