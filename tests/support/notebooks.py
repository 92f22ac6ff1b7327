"""Notebooks for the tests of their reader."""

from typing import Any

from sensorium.observations.base import Part

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def code(source: Any, outputs: Any = (), **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": list(outputs)} | more


def notebook(*cells: Any, minor: int = 5, **more: Any) -> dict[str, Any]:
    return {"nbformat": 4, "nbformat_minor": minor, "metadata": {}, "cells": list(cells)} | more


def by_id(parts: list[Part]) -> dict[str, Part]:
    found = {part.id: part for part in parts}
    assert len(found) == len(parts), "ids are not unique"
    return found
