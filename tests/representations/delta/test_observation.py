import random

import pytest
from delta_notebooks import Cell, long_notebook, notebook
from hypothesis import given, settings
from hypothesis import strategies as st
from part_strategies import edited, observations

from sensorium.core import Modality, ObservationError
from sensorium.observations.base import Observation, Part
from sensorium.observations.values import TextValue
from sensorium.representations.delta import ObservationDelta, apply, diff
from sensorium.representations.delta.observation import observation_digest
from sensorium.representations.delta.pairing import pair_parts
from sensorium.representations.delta.renumber import Run, id_rule, renumbered


def proven(old: Observation, new: Observation) -> ObservationDelta:
    """The difference, after it has been proven lossless, also through JSON."""
    delta = diff(old, new)
    assert repr(apply(old, delta)) == repr(new)
    received = ObservationDelta.model_validate_json(delta.model_dump_json())
    assert repr(apply(Observation.model_validate_json(old.model_dump_json()), received)) == repr(new)
    return delta


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_any_observations_are_lossless(data: st.DataObject) -> None:
    old = data.draw(observations())
    order = data.draw(st.permutations(old.parts))
    kept = [data.draw(st.just(part) | edited(part)) for part in order if data.draw(st.integers(0, 4))]
    names = {part.id for part in kept}
    other = data.draw(observations())
    new = [*kept, *(part for part in other.parts if part.id not in names)]
    proven(old, Observation(parts=tuple(new), timestamp_s=other.timestamp_s))


@pytest.mark.parametrize("names", [True, False])
def test_random_edits_of_notebooks_are_lossless_and_cheap(names: bool) -> None:
    rng = random.Random(5)
    cells = long_notebook(40, names=names)
    old = notebook(cells)
    size = len(old.model_dump_json())
    for step in range(60):
        cells = [*cells]
        at = rng.randrange(len(cells))
        match rng.randrange(7):
            case 0:
                cells.insert(at, Cell(f"fresh = {step}", name=f"n{step}x" if names else "", output="ok"))
            case 1 if len(cells) > 10:
                del cells[at]
            case 2:
                cells[at] = cells[at]._replace(source=cells[at].source + f"# {step}\n")
            case 3:
                cells[at] = cells[at]._replace(output=f"{step}\n{cells[at].output}", count=step)
            case 4:
                cells.append(cells.pop(at))
            case 5:
                cells[at] = cells[at]._replace(output="")
            case _:
                cells = [cell._replace(count=cell.count and cell.count + 5) for cell in cells]
        new = notebook(cells, time=float(step))
        delta = proven(old, new)
        assert delta.num_bytes < 0.15 * size, delta
        old = new


def test_one_edited_cell_of_200_costs_less_than_one_percent() -> None:
    cells = long_notebook(200)
    old = notebook(cells, time=0.0)
    cells[100] = cells[100]._replace(source=cells[100].source.replace("arange", "linspace"), count=999)
    new = notebook(cells, time=1.0)
    delta = proven(old, new)
    assert delta.num_bytes < 0.01 * len(new.model_dump_json())
    assert [change.part_id for change in delta.changes] == ["nb.ipynb/cell-a064"]
    assert delta.runs == (Run(0, 400),)
    assert len(delta.stamps) == 1


@pytest.mark.parametrize("names", [True, False])
def test_an_inserted_cell_costs_the_cell(names: bool) -> None:
    cells = long_notebook(200, names=names)
    old = notebook(cells)
    cells.insert(3, Cell("new = 1", name="zz" if names else ""))
    delta = proven(old, notebook(cells))
    assert [added.at for added in delta.added] == [6]
    assert delta.changes == delta.removed == delta.renamed == ()
    assert delta.runs == (Run(0, 6), Run(6, 394, 1, 0, *((-1, 0) if names else (0, 1))))
    assert delta.num_bytes < 600


def test_a_removed_cell_costs_its_name() -> None:
    cells = long_notebook(50, names=False)
    old = notebook(cells)
    del cells[10]
    delta = proven(old, notebook(cells))
    assert delta.removed == ("nb.ipynb/cell-10", "nb.ipynb/cell-10/output-0")
    assert delta.added == delta.changes == ()
    assert delta.num_bytes < 400


def test_moved_cells_cost_no_content() -> None:
    cells = long_notebook(50, names=False)
    old = notebook(cells)
    delta = proven(old, notebook([*cells[:10], *cells[20:], *cells[10:20]]))
    assert delta.added == delta.removed == delta.changes == ()
    assert len(delta.runs) == 3


def test_running_everything_again_costs_one_rule() -> None:
    cells = long_notebook(50)
    delta = proven(notebook(cells), notebook([cell._replace(count=(cell.count or 0) + 50) for cell in cells]))
    assert delta.runs == (Run(0, 100, 0, 50),)
    assert delta.changes == ()


def test_shifted_and_edited_at_once_is_one_small_change() -> None:
    cells = long_notebook(20, names=False)
    old = notebook(cells)
    cells[12] = cells[12]._replace(source=cells[12].source + "# edited\n")
    cells.insert(2, Cell("new = 1"))
    delta = proven(old, notebook(cells))
    assert [change.part_id for change in delta.changes] == ["nb.ipynb/cell-13"]
    assert [added.part.id for added in delta.added] == ["nb.ipynb/cell-2"]


def test_a_renamed_file_costs_its_name() -> None:
    old, new = (
        Observation(parts=(Part(id=name, modality=Modality.TEXT, value=TextValue(text="text " * 500)),))
        for name in ("before.txt", "after.txt")
    )
    delta = proven(old, new)
    assert [renamed.id for renamed in delta.renamed] == ["after.txt"]
    assert delta.num_bytes < 300


def test_unchanged_parts_stay_the_same_objects() -> None:
    cells = long_notebook(5)
    old = notebook(cells)
    cells[2] = cells[2]._replace(source="other")
    new = apply(old, diff(old, notebook(cells)))
    assert [one is other for one, other in zip(old.parts, new.parts, strict=True)].count(False) == 1


def test_texts_of_unchanged_parts_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = long_notebook(200)
    old = notebook(cells)
    cells[7] = cells[7]._replace(source="other = 1\n" * 3)
    seen = []

    def counted(before: Part, after: Part) -> None:
        seen.append((before.id, after.id))

    monkeypatch.setattr("sensorium.representations.delta.observation.make_delta", counted)
    diff(old, notebook(cells))
    assert seen == [("nb.ipynb/cell-a007", "nb.ipynb/cell-a007")]


def test_pairs_prefer_lasting_ids() -> None:
    old = [Cell("", name="a"), Cell("same", name="b"), Cell("", name="c")]
    new = [Cell("same", name="b"), Cell("", name="c")]
    assert pair_parts(notebook(old).parts, notebook(new).parts) == {0: 1, 1: 2}


def test_errors_say_that_a_state_is_missing() -> None:
    first, second = notebook(long_notebook(3)), notebook(long_notebook(4))
    delta = diff(first, second)
    with pytest.raises(ObservationError, match="one in between is missing"):
        apply(second, delta)
    text = delta.model_dump_json()
    for good, bad in (
        ('"runs":[[0,6', '"runs":[[0,9'),
        ("import numpy", "import humpty"),
        ('"runs":[[0,6', '"runs":[[0,5'),
    ):
        assert good in text
        with pytest.raises(ObservationError, match="Ask for a keyframe"):
            apply(first, ObservationDelta.model_validate_json(text.replace(good, bad)))


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("a/cell-9/output-0", "a/cell-10/output-0", (0, 1)),
        ("r2/cell-3", "r2/cell-1", (1, -2)),
        ("same", "same", (-1, 0)),
        ("cell-07", "cell-08", None),
        ("a1b2", "a2b3", None),
        ("x", "y", None),
        ("1" * 30, "2" * 30, None),
    ],
)
def test_rules_of_ids(old: str, new: str, rule: tuple[int, int] | None) -> None:
    assert id_rule(old, new) == rule
    if rule is not None:
        assert renumbered(old, *rule) == new


def test_digest_sees_everything() -> None:
    parts = [Part(id=name, modality=Modality.TEXT, value=TextValue(text="t")) for name in ("a", "b")]
    states = [
        Observation(parts=tuple(parts)),
        Observation(parts=tuple(parts[::-1])),
        Observation(parts=tuple(parts), timestamp_s=0.0),
        Observation(parts=(parts[0],)),
        Observation(
            parts=(parts[0], Part(id="b", modality=Modality.TEXT, value=parts[1].value, notes=("n",)))
        ),
    ]
    assert len({observation_digest(one) for one in states}) == len(states)
