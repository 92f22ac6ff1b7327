"""The smallest environment: one answer, judged letter by letter."""
