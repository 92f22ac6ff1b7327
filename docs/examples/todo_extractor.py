"""An extractor of one's own: notes that programmers left in code."""

import re
from collections.abc import Sequence

from sensorium import read
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.runner import FeatureRunner
from sensorium.observations import Part
from sensorium.testing.extractor import check_extractor

_NOTE = re.compile(r"#\s*(?:TODO|FIXME)\b:?\s*(.*)")


class Notes:
    """Finds TODO and FIXME in code."""

    name = "notes"
    version = "1"  # another one whenever results could change: it is part of the cache's key

    def accepts(self, part: Part) -> bool:
        """Code parts and code cells; this must be cheap."""
        return part.code is not None

    def __call__(self, parts: Sequence[Part]) -> list[Features]:
        """One result per part, in order."""
        found = []
        for part in parts:
            notes = _NOTE.findall(part.text or "")
            found.append(
                Features(
                    part_id=part.id,
                    extractor=self.name,
                    version=self.version,
                    data={"notes": notes},  # plain JSON data
                    summary=f"{len(notes)} notes: {'; '.join(notes)}" if notes else "",
                )
            )
        return found


if __name__ == "__main__":
    parts = read({"a.py": "x = 1  # TODO: explain\n", "b.py": "y = 2\n", "log.txt": "TODO"}).parts
    check_extractor(Notes(), parts)  # raises AssertionError where the contract is broken
    with FeatureRunner(extractors=[Notes()]) as runner:
        report = runner.run(parts)
    for part in parts:
        print(part.id, {name: found.summary for name, found in report.features[part.id].items()})
