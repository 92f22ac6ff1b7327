"""Questions about groups of rows: means, counts, quantiles, spread."""

import math

import numpy as np

from sensorium.envs.notebook import measures
from sensorium.envs.notebook.questions.question import (
    Draw,
    Question,
    Unsuitable,
    best,
    category,
    count,
    number,
)


def group_mean(draw: Draw) -> Question:
    """The mean of one group."""
    y, g = draw.numbers(1)[0], draw.category()
    level = draw.level(g)
    values = draw.complete(y, where={g.name: level}).numbers(y.name)
    return Question(
        f"What is the mean of {y.name} over the rows where {g.name} is {level!r}?",
        number(measures.mean(values)),
        f"answer = df.loc[df[{g.name!r}].astype(str) == {level!r}, {y.name!r}].mean()",
        (y.name, g.name),
    )


def group_extreme(draw: Draw) -> Question:
    """The group with the highest or lowest mean or median."""
    y, g = draw.numbers(1)[0], draw.category(at_least=5)
    how, highest = draw.rng.choice(("mean", "median")), draw.rng.random() < 0.5
    table = draw.complete(y, g)
    groups, values = table.texts(g.name), table.numbers(y.name)
    levels = sorted(set(groups))
    scores = {}
    for level in levels:
        own = values[[cell == level for cell in groups]]
        scores[level] = measures.mean(own) if how == "mean" else measures.quantile(own, 0.5)
    word, method = ("highest", "idxmax") if highest else ("lowest", "idxmin")
    return Question(
        f"Which {g.name} has the {word} {how} of {y.name}?",
        category(best(scores, highest=highest), levels),
        f"answer = df.groupby({g.name!r})[{y.name!r}].{how}().{method}()",
        (y.name, g.name),
    )


def group_difference(draw: Draw) -> Question:
    """How far apart the means of two groups are, as it is or in standard deviations."""
    y, g = draw.numbers(1)[0], draw.category()
    levels = draw.levels(g, 12)
    if len(levels) < 2:
        raise Unsuitable
    one, other = draw.rng.sample(levels, 2)
    a, b = (draw.complete(y, where={g.name: level}).numbers(y.name) for level in (one, other))
    difference = measures.mean(a) - measures.mean(b)
    said = f"the mean of {y.name} where {g.name} is {one!r} minus its mean where {g.name} is {other!r}"
    pick = "".join(
        f"{n} = df.loc[df[{g.name!r}].astype(str) == {level!r}, {y.name!r}].dropna()\n"
        for n, level in (("a", one), ("b", other))
    )
    if draw.rng.random() < 0.5:
        code = f"{pick}answer = a.mean() - b.mean()"
        return Question(f"What is {said}?", number(difference), code, (y.name, g.name))
    pooled = ((len(a) - 1) * measures.variance(a) + (len(b) - 1) * measures.variance(b)) / (
        len(a) + len(b) - 2
    )
    if pooled <= 0.0:
        raise Unsuitable
    return Question(
        f"What is Cohen's d, that is {said}, divided by the pooled standard deviation of the two groups "
        "(each variance with n - 1, weighted by its n - 1)?",
        number(difference / math.sqrt(pooled)),
        f"{pick}pooled = ((len(a) - 1) * a.var() + (len(b) - 1) * b.var()) / (len(a) + len(b) - 2)\n"
        "answer = (a.mean() - b.mean()) / pooled ** 0.5",
        (y.name, g.name),
    )


def filtered_quantile(draw: Draw) -> Question:
    """A percentile of the rows above a threshold."""
    x, y = draw.numbers(2)
    table = draw.complete(x, y)
    limit = draw.threshold(table.numbers(x.name), 0.1, 0.6)
    percent = draw.rng.choice((10, 25, 35, 65, 75, 90))
    values = table.numbers(y.name)[table.numbers(x.name) > limit]
    if len(values) < 10:
        raise Unsuitable
    return Question(
        f"What is the {percent}th percentile (with linear interpolation) of {y.name} over the rows where "
        f"{x.name} is greater than {limit:g}?",
        number(measures.quantile(values, percent / 100)),
        f"answer = df.loc[df[{x.name!r}] > {limit!r}, {y.name!r}].quantile({percent / 100!r})",
        (x.name, y.name),
    )


def filtered_count(draw: Draw) -> Question:
    """How many rows meet two conditions."""
    x, y = draw.numbers(2)
    table = draw.complete(x, y)
    low = draw.threshold(table.numbers(x.name), 0.2, 0.5)
    high = draw.threshold(table.numbers(y.name), 0.5, 0.8)
    met = (table.numbers(x.name) > low) & (table.numbers(y.name) < high)
    return Question(
        f"How many rows have {x.name} greater than {low:g} and {y.name} less than {high:g}?",
        count(int(met.sum())),
        f"answer = int(((df[{x.name!r}] > {low!r}) & (df[{y.name!r}] < {high!r})).sum())",
        (x.name, y.name),
    )


def share_above(draw: Draw) -> Question:
    """What part of a group lies above the median of all."""
    y, g = draw.numbers(1)[0], draw.category()
    level = draw.level(g, 20)
    median = measures.quantile(draw.complete(y).numbers(y.name), 0.5)
    values = draw.complete(y, where={g.name: level}).numbers(y.name)
    return Question(
        f"Of the rows where {g.name} is {level!r}, what percentage has {y.name} greater than the median of "
        f"{y.name} over all rows? Answer in per cent.",
        number(100.0 * float((values > median).sum()) / len(values)),
        f"own = df.loc[df[{g.name!r}].astype(str) == {level!r}, {y.name!r}].dropna()\n"
        f"answer = 100 * (own > df[{y.name!r}].median()).mean()",
        (y.name, g.name),
    )


def spread(draw: Draw) -> Question:
    """How much a column varies."""
    y = draw.numbers(1)[0]
    values = draw.complete(y).numbers(y.name)
    mean = measures.mean(values)
    name = repr(y.name)
    kinds = {
        "sample standard deviation (n - 1)": (math.sqrt(measures.variance(values)), f"df[{name}].std()"),
        "interquartile range (linear interpolation)": (
            measures.quantile(values, 0.75) - measures.quantile(values, 0.25),
            f"df[{name}].quantile(0.75) - df[{name}].quantile(0.25)",
        ),
        "skewness (corrected for bias, as pandas computes it)": (
            measures.skewness(values),
            f"df[{name}].skew()",
        ),
        "coefficient of variation (sample standard deviation with n - 1, divided by the mean)": (
            math.sqrt(measures.variance(values)) / mean if mean else math.nan,
            f"df[{name}].std() / df[{name}].mean()",
        ),
    }
    kind = draw.rng.choice(sorted(kinds))
    value, code = kinds[kind]
    return Question(f"What is the {kind} of {y.name}?", number(value), f"answer = {code}", (y.name,))


def outliers(draw: Draw) -> Question:
    """How many values lie outside the fences of a box plot."""
    y = draw.numbers(1)[0]
    values = draw.complete(y).numbers(y.name)
    low, high = measures.quantile(values, 0.25), measures.quantile(values, 0.75)
    reach = 1.5 * (high - low)
    edge = np.minimum(np.abs(values - (low - reach)), np.abs(values - (high + reach)))
    if reach <= 0.0 or edge.min() < 1e-9 * max(1.0, abs(high)):
        raise Unsuitable
    outside = int(((values < low - reach) | (values > high + reach)).sum())
    return Question(
        f"How many values of {y.name} are outliers, that is below Q1 - 1.5 IQR or above Q3 + 1.5 IQR "
        "(quartiles with linear interpolation)?",
        count(outside, at_least=6),
        f"q1, q3 = df[{y.name!r}].quantile([0.25, 0.75])\n"
        f"answer = int(((df[{y.name!r}] < q1 - 1.5 * (q3 - q1)) | "
        f"(df[{y.name!r}] > q3 + 1.5 * (q3 - q1))).sum())",
        (y.name,),
    )


def weighted_mean(draw: Draw) -> Question:
    """The mean of a column with another as weight."""
    y, w = draw.numbers(2)
    table = draw.complete(y, w)
    values, weights = table.numbers(y.name), table.numbers(w.name)
    if weights.min() < 0.0 or weights.max() <= 0.0:
        raise Unsuitable
    return Question(
        f"What is the mean of {y.name} weighted by {w.name}?",
        number(math.fsum(values * weights) / math.fsum(weights)),
        f"d = df[[{y.name!r}, {w.name!r}]].dropna()\n"
        f"answer = (d[{y.name!r}] * d[{w.name!r}]).sum() / d[{w.name!r}].sum()",
        (y.name, w.name),
    )


def top_rows(draw: Draw) -> Question:
    """The mean of one column over the rows that come first by another."""
    x, y = draw.numbers(2)
    table = draw.complete(x, y)
    how_many, largest = draw.rng.choice((5, 10, 15, 20)), draw.rng.random() < 0.5
    if len(table) < 2 * how_many:
        raise Unsuitable
    keys, values = table.numbers(x.name), table.numbers(y.name)
    order = sorted(range(len(table)), key=lambda row: -keys[row] if largest else keys[row])
    if keys[order[how_many - 1]] == keys[order[how_many]]:
        raise Unsuitable
    chosen = values[order[:how_many]]
    word, method = ("largest", "nlargest") if largest else ("smallest", "nsmallest")
    return Question(
        f"What is the mean of {y.name} over the {how_many} rows with the {word} {x.name}?",
        number(math.fsum(chosen) / how_many),
        f"answer = df[[{x.name!r}, {y.name!r}]].dropna().{method}({how_many}, {x.name!r})[{y.name!r}].mean()",
        (x.name, y.name),
    )
