"""Questions that are answered with a test or a fitted model."""

import math

import numpy as np

from sensorium.envs.notebook import measures
from sensorium.envs.notebook.questions.question import Draw, Question, Unsuitable, number


def correlation(draw: Draw) -> Question:
    """Pearson's or Spearman's coefficient."""
    x, y = draw.numbers(2)
    table = draw.complete(x, y)
    a, b = table.numbers(x.name), table.numbers(y.name)
    kind = draw.rng.choice(("Pearson", "Spearman"))
    if kind == "Spearman":
        a, b = measures.ranks(a), measures.ranks(b)
    return Question(
        f"What is {kind}'s correlation coefficient of {x.name} and {y.name}?",
        number(measures.pearson(a, b)),
        f"answer = df[{x.name!r}].corr(df[{y.name!r}], method={kind.lower()!r})",
        (x.name, y.name),
    )


def partial_correlation(draw: Draw) -> Question:
    """A correlation with a third column held fixed."""
    x, y, z = draw.numbers(3)
    table = draw.complete(x, y, z)
    a, b, c = (table.numbers(column.name) for column in (x, y, z))
    ab, ac, bc = measures.pearson(a, b), measures.pearson(a, c), measures.pearson(b, c)
    rest = (1 - ac * ac) * (1 - bc * bc)
    if rest < 1e-6:
        raise Unsuitable
    return Question(
        f"What is the partial correlation (Pearson) of {x.name} and {y.name}, given {z.name}?",
        number((ab - ac * bc) / math.sqrt(rest)),
        "import numpy as np\n"
        f"d = df[[{x.name!r}, {y.name!r}, {z.name!r}]].dropna()\n"
        f"line = lambda name: d[name] - np.polyval(np.polyfit(d[{z.name!r}], d[name], 1), d[{z.name!r}])\n"
        f"answer = line({x.name!r}).corr(line({y.name!r}))",
        (x.name, y.name, z.name),
    )


def linear_regression(draw: Draw) -> Question:
    """A coefficient, the fit, or a prediction of a linear model."""
    y, *predictors = draw.numbers(draw.rng.choice((2, 3, 4)))
    table = draw.complete(y, *predictors)
    columns = [table.numbers(p.name) for p in predictors]
    if len(table) < 10 * len(predictors) or _is_collinear(columns):
        raise Unsuitable
    coefficients, r_squared = measures.least_squares(columns, table.numbers(y.name))
    names = [p.name for p in predictors]
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    said = f"Fit a linear regression (ordinary least squares with intercept) of {y.name} on {listed}."
    fit = (
        f"import statsmodels.api as sm\nd = df[{[y.name, *names]!r}].dropna()\n"
        f"fit = sm.OLS(d[{y.name!r}], sm.add_constant(d[{names!r}])).fit()\n"
    )
    kind = draw.rng.choice(("slope", "r_squared", "prediction"))
    if kind == "slope":
        place = draw.rng.randrange(len(names))
        text, value = f"What is the coefficient of {names[place]}?", float(coefficients[place + 1])
        code = f"answer = fit.params[{names[place]!r}]"
    elif kind == "r_squared":
        text, value, code = "What is its R squared?", r_squared, "answer = fit.rsquared"
    else:
        at = [draw.threshold(column, 0.3, 0.7) for column in columns]
        where = ", ".join(f"{n} = {v:g}" for n, v in zip(names, at, strict=True))
        text = f"What does it predict for {where}?"
        value = float(coefficients[0] + sum(c * v for c, v in zip(coefficients[1:], at, strict=True)))
        code = f"answer = float(fit.predict([1.0, *{at!r}])[0])"
    return Question(f"{said} {text}", number(value), fit + code, (y.name, *names))


def logistic_regression(draw: Draw) -> Question:
    """A coefficient or odds ratio of a logistic model."""
    binary = [
        c
        for c in draw.columns
        if c.kind == "category" and len(draw.levels(c, 15)) == len(draw.levels(c)) == 2
    ]
    if not binary:
        raise Unsuitable
    g = draw.rng.choice(binary)
    predictors = draw.numbers(draw.rng.choice((1, 2)))
    level = draw.level(g)
    table = draw.complete(g, *predictors)
    y = np.array([float(cell == level) for cell in table.texts(g.name)])
    columns = [table.numbers(p.name) for p in predictors]
    if _is_collinear(columns):
        raise Unsuitable
    coefficients = measures.logistic(columns, y)
    if coefficients is None:
        raise Unsuitable
    names = [p.name for p in predictors]
    place, odds = draw.rng.randrange(len(names)), draw.rng.random() < 0.4
    value = float(coefficients[place + 1])
    asked = f"coefficient of {names[place]}"
    if odds:
        scale = float(f"{float(np.std(columns[place])):.1g}")
        asked = f"odds ratio of {names[place]} for an increase by {scale:g}"
        value = math.exp(value * scale)
    answer = f"fit.params[{names[place]!r}]"
    return Question(
        f"Fit a logistic regression (maximum likelihood with intercept, no regularisation) of the event that "
        f"{g.name} is {level!r} on {' and '.join(names)}. What is the {asked}?",
        number(value),
        "import numpy as np, statsmodels.api as sm\n"
        f"d = df[{[g.name, *names]!r}].dropna()\n"
        f"y = (d[{g.name!r}].astype(str) == {level!r}).astype(float)\n"
        f"x = d[{names!r}]\n"
        "centre, scale = x.mean(), x.std()\n"
        "fit = sm.Logit(y, sm.add_constant((x - centre) / scale)).fit(disp=0, maxiter=200, tol=1e-12)\n"
        + (
            f"answer = np.exp({answer} / scale[{names[place]!r}] * {scale!r})"
            if odds
            else f"answer = {answer} / scale[{names[place]!r}]"
        ),
        (g.name, *names),
    )


def two_groups_test(draw: Draw) -> Question:
    """Welch's t-test: its statistic or p-value."""
    y, g = draw.numbers(1)[0], draw.category()
    levels = draw.levels(g, 12)
    if len(levels) < 2:
        raise Unsuitable
    one, other = draw.rng.sample(levels, 2)
    a, b = (draw.complete(y, where={g.name: level}).numbers(y.name) for level in (one, other))
    if measures.variance(a) <= 0.0 or measures.variance(b) <= 0.0:
        raise Unsuitable
    t, _, p = measures.welch(a, b)
    asked = draw.rng.choice(("t statistic", "two-sided p-value"))
    if asked != "t statistic" and not 1e-10 < p < 0.9:
        raise Unsuitable
    index = 0 if asked == "t statistic" else 1
    return Question(
        f"Compare {y.name} where {g.name} is {one!r} (first group) with {y.name} where {g.name} is {other!r} "
        f"(second group) by Welch's t-test (unequal variances). What is the {asked}?",
        number(t) if index == 0 else number(p, digits=3),
        "from scipy import stats\n"
        f"a, b = (df.loc[df[{g.name!r}].astype(str) == level, {y.name!r}].dropna() for level in "
        f"{(one, other)!r})\n"
        f"answer = stats.ttest_ind(a, b, equal_var=False)[{index}]",
        (y.name, g.name),
    )


def analysis_of_variance(draw: Draw) -> Question:
    """F of the means of all groups."""
    y, g = draw.numbers(1)[0], draw.category(at_least=3, at_most=12)
    levels = draw.levels(g)
    groups = [draw.complete(y, where={g.name: level}).numbers(y.name) for level in levels]
    if all(measures.variance(group) <= 0.0 for group in groups):
        raise Unsuitable
    return Question(
        f"What is the F statistic of a one-way analysis of variance of {y.name} by {g.name}?",
        number(measures.anova(groups)),
        "from scipy import stats\n"
        f"groups = [group.dropna() for _, group in df.groupby({g.name!r})[{y.name!r}]]\n"
        "answer = stats.f_oneway(*groups)[0]",
        (y.name, g.name),
    )


def independence(draw: Draw) -> Question:
    """Chi-square of two columns of categories."""
    columns = [c for c in draw.columns if c.kind == "category" and 2 <= len(draw.levels(c)) <= 12]
    if len(columns) < 2 or max(len(draw.levels(c)) for c in columns) < 3:
        raise Unsuitable
    one, other = draw.rng.sample(columns, 2)
    table = draw.complete(one, other)
    rows, across = draw.levels(one), draw.levels(other)
    counts = np.zeros((len(rows), len(across)))
    for a, b in zip(table.texts(one.name), table.texts(other.name), strict=True):
        counts[rows.index(a), across.index(b)] += 1
    if (counts.sum(axis=0) == 0).any() or (counts.sum(axis=1) == 0).any():
        raise Unsuitable
    return Question(
        f"What is Pearson's chi-square statistic (without continuity correction) of the table of counts of "
        f"{one.name} by {other.name}?",
        number(measures.chi_square(counts)),
        "from scipy import stats\n"
        f"answer = stats.chi2_contingency(pd.crosstab(df[{one.name!r}], df[{other.name!r}]), "
        "correction=False)[0]",
        (one.name, other.name),
    )


def principal_component(draw: Draw) -> Question:
    """What the first component of standardised columns explains."""
    columns = draw.numbers(draw.rng.choice((4, 5)))
    table = draw.complete(*columns)
    values = [table.numbers(c.name) for c in columns]
    if any(np.std(v) == 0 for v in values):
        raise Unsuitable
    matrix = np.array([[measures.pearson(a, b) for b in values] for a in values])
    names = [c.name for c in columns]
    return Question(
        f"Standardise {', '.join(names)} (mean 0, variance 1) and do a principal component analysis. What "
        "percentage of the variance does the first component explain? Answer in per cent.",
        number(100.0 * float(np.linalg.eigvalsh(matrix)[-1]) / len(columns)),
        "from sklearn.decomposition import PCA\nfrom sklearn.preprocessing import StandardScaler\n"
        f"d = StandardScaler().fit_transform(df[{names!r}].dropna())\n"
        "answer = 100 * PCA().fit(d).explained_variance_ratio_[0]",
        tuple(names),
    )


def _is_collinear(columns: list[measures.Numbers]) -> bool:
    for place, one in enumerate(columns):
        if np.std(one) == 0 or any(abs(measures.pearson(one, other)) > 0.999 for other in columns[:place]):
            return True
    return False
