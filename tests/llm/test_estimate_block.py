"""Many lines counted at once cost what they cost one by one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorium.llm.config import EstimateConfig
from sensorium.llm.estimate import EstimateCounter, _block_costs

PIECES = (
    *" \t_(\"'.,-#\x0b\x0c\x1c\x7f\0\rAbZ059",
    *(
        "  ",
        " " * 70,
        "\t" * 9,
        "((",
        "--",
        "=>",
        "fo",
        "Foo",
        "FOO",
        "FOObar",
        "fooBar",
        "word ",
        "12345",
        "x1",
    ),
)
LINES = st.lists(st.lists(st.sampled_from(PIECES), max_size=10).map("".join), min_size=1, max_size=12)


@settings(max_examples=600)
@given(LINES, st.sampled_from([1, 2, 3]))
def test_lines_cost_the_same_together_and_alone(lines: list[str], digits: int) -> None:
    counter = EstimateCounter(EstimateConfig(digits_per_token=digits))
    assert _block_costs(digits)(lines) == [counter._count(line) for line in lines]


def test_costs_by_hand() -> None:
    lines = ["", "a", "a  a", "  ", "12", "(", "(a", "((", "HTTP", "\t\t", "\x00"]
    # A run of signs: 30 + 65 for a new one + 4 for the same again, at least a token. HTTP: a token, and what
    # the pairs ht, tt, tp (0 + 40 + 60) are rarer than capitals may be (20).
    costs = _block_costs(1)(lines)
    assert costs[:8] == [0, 100, 300, 200, 200, 100, 125, 100]
    assert costs[9:] == [100, 100]
    assert costs[8] == 180


@pytest.mark.parametrize("ending", ["", "\n", " é\n", "\n" + "x" * 600])
def test_a_long_text_costs_the_sum_of_its_lines(ending: str) -> None:
    text = "\n".join(
        f"{'  ' * (n % 4)}value_{n} = total(rows[{n}], 'Naïve' if {n} else None)" for n in range(90)
    )
    together, alone = EstimateCounter(EstimateConfig()), EstimateCounter(EstimateConfig())
    lines = (text + ending).split("\n")
    units = sum(map(alone._count, lines)) + 100 * (len(lines) - 1)
    assert together.text(text + ending) == -(-units // 100)
    assert together.text(text + ending) == -(-units // 100)  # remembered
    assert [together.text(line) for line in lines] == [alone.text(line) for line in lines]


def test_counting_ahead_leaves_every_count_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"x_{n} = {n}\n\nprint('Größe', x_{n}){' # long' * n}\r\nend" for n in range(120)]
    ahead, alone = EstimateCounter(EstimateConfig()), EstimateCounter(EstimateConfig())
    ahead.count_ahead(texts)
    for counting in ("_count", "_count_new"):
        monkeypatch.setattr(ahead, counting, lambda lines: pytest.fail(f"{lines!r} was not counted ahead"))
    assert [ahead.text(text) for text in texts if len(text) < 500] == [
        alone.text(text) for text in texts if len(text) < 500
    ]
