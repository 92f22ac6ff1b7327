"""Kinds of questions about data, each with its answer and a solution."""

from sensorium.envs.notebook.questions import files, groups, models, series
from sensorium.envs.notebook.questions.question import Draw, Question, Template, Unsuitable

TEMPLATES: dict[str, Template] = {
    "analysis_of_variance": models.analysis_of_variance,
    "autocorrelation": series.autocorrelation,
    "correlation": models.correlation,
    "duplicates": files.duplicates,
    "filled_values": files.filled_values,
    "filtered_count": groups.filtered_count,
    "filtered_quantile": groups.filtered_quantile,
    "group_difference": groups.group_difference,
    "group_extreme": groups.group_extreme,
    "group_mean": groups.group_mean,
    "independence": models.independence,
    "join": files.join,
    "linear_regression": models.linear_regression,
    "logistic_regression": models.logistic_regression,
    "longest_run": series.longest_run,
    "missing_values": files.missing_values,
    "month_extreme": series.month_extreme,
    "month_of_year": series.month_of_year,
    "outliers": groups.outliers,
    "partial_correlation": models.partial_correlation,
    "principal_component": models.principal_component,
    "relative_change": series.relative_change,
    "rolling_extreme": series.rolling_extreme,
    "share_above": groups.share_above,
    "spread": groups.spread,
    "top_rows": groups.top_rows,
    "trend": series.trend,
    "two_groups_test": models.two_groups_test,
    "unmatched": files.unmatched,
    "weekday_mean": series.weekday_mean,
    "weighted_mean": groups.weighted_mean,
    "written_numbers": files.written_numbers,
    "year_extreme": series.year_extreme,
}
"""Name -> asks such a question about the rows it is given."""

__all__ = ["TEMPLATES", "Draw", "Question", "Template", "Unsuitable"]
