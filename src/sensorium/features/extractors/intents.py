"""What a text wants: questions, requests, reports, by rules for English; honest about what they rest on."""

import re
from typing import NamedTuple

_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_FLAGS = re.IGNORECASE

_RULES: tuple[tuple[str, float, re.Pattern[str]], ...] = (
    ("question", 0.95, re.compile(r"\?\s*[\"')\]]*\s*$")),
    (
        "question",
        0.8,
        re.compile(
            r"^\W*(?:(?:so|and|but|now|ok|hi|hello),?\s+)*(?:why|how|what|which|who|whose|when|where)\b"
            r"(?!\s+(?:ever|I|we|it)\s+\w+ed\b)",
            _FLAGS,
        ),
    ),
    (
        "question",
        0.8,
        re.compile(
            r"^\W*(?:is|are|was|were|does|do|did|has|have|can|could|should|would|will)\s+"
            r"(?:i|you|we|he|she|it|they|there|this|that|these|those|the|a|an)\b",
            _FLAGS,
        ),
    ),
    (
        "request",
        0.97,
        re.compile(
            r"\b(?:please|pls|kindly)\b|\b(?:can|could|would|will)\s+(?:you|someone|anyone|somebody|anybody)\b|"
            r"\b(?:i|we)\s+(?:need|want|would like|'d like)\s+(?:you\s+)?(?:to|a|an|the|some|help)\b|"
            r"\bhelp\s+(?:me|us)\b|\blet'?s\b",
            _FLAGS,
        ),
    ),
    (
        "request",
        0.8,
        re.compile(
            r"^\W*(?:(?:then|now|first|next|also|finally),?\s+)?(?:do not|don't|never|always)?\s*"
            r"(?:add|analy[sz]e|apply|avoid|build|change|check|clean|close|compare|compute|convert|copy|create|"
            r"debug|delete|describe|download|ensure|estimate|evaluate|explain|extract|find|fit|fix|generate|get|"
            r"give|go|implement|improve|install|keep|list|load|make|merge|modify|move|open|optimi[sz]e|plot|predict|"
            r"print|put|read|refactor|remove|rename|replace|report|restart|return|review|rewrite|run|save|search|"
            r"send|set|show|solve|sort|start|stop|summari[sz]e|take|tell|test|train|translate|try|turn|update|"
            r"upload|use|validate|verify|write)\b(?!\s*[:=(.])",
            _FLAGS,
        ),
    ),
    (
        "error report",
        0.95,
        re.compile(
            r"\b\w*(?:Error|Exception)\b\s*:|^Traceback \(most recent call last\)|"
            r"\b(?:segmentation fault|core dumped|stack ?trace|kernel panic|out of memory|exit code [1-9]\d*|"
            r"HTTP(?:/\d\.\d)? [45]\d\d)\b",
            re.MULTILINE,
        ),
    ),
    (
        "error report",
        0.75,
        re.compile(
            r"\b(?:errors?|exception|fails?|failed|failing|failures?|crash(?:e[sd]|ing)?|broken|bug|hangs?|"
            r"freezes?|froze|timed out|times out|does(?:n't| not) work|did(?:n't| not) work|not working|"
            r"stopped working|cannot|can't|unable to|refuse[sd]?)\b",
            _FLAGS,
        ),
    ),
    (
        "praise",
        0.85,
        re.compile(
            r"\b(?:thank(?:s| you)|great (?:work|job)|well done|good job|nice (?:work|job)|excellent|awesome|"
            r"amazing|fantastic|brilliant|perfect(?:ly)?|works? (?:great|well|perfectly|like a charm)|"
            r"(?:i|we) (?:love|like|appreciate))\b",
            _FLAGS,
        ),
    ),
    (
        "complaint",
        0.85,
        re.compile(
            r"\b(?:unacceptable|disappoint(?:ed|ing)|frustrat(?:ed|ing)|annoy(?:ed|ing)|terrible|horrible|awful|"
            r"useless|ridiculous|waste of (?:time|money)|sick of|fed up|worst|"
            r"keeps? (?:failing|crashing|breaking)|"
            r"(?:still|again) (?:broken|not working|fails?)|why (?:the hell|on earth))\b",
            _FLAGS,
        ),
    ),
    (
        "agreement",
        0.8,
        re.compile(r"^\W*(?:yes|yep|sure|ok(?:ay)?|agreed|approved|lgtm|sounds good|confirmed)\b", _FLAGS),
    ),
    (
        "refusal",
        0.8,
        re.compile(r"^\W*(?:no|nope|i disagree|rejected|not approved|declined)\b[,.! ]", _FLAGS),
    ),
    ("greeting", 0.8, re.compile(r"^\W*(?:hi|hello|hey|dear|good (?:morning|afternoon|evening))\b", _FLAGS)),
)
"""Intent, how sure the rule is, and what it looks for in a sentence."""

REPORT = "report"
"""A statement in which no rule found anything else."""


class Intent(NamedTuple):
    """What some sentences of a text want."""

    intent: str
    """``question``, ``request``, ``error report``, ``praise``, ``complaint``, ``agreement``, ``refusal``,
    ``greeting`` or ``report``."""
    confidence: float
    """How sure the rule is that found it, in (0, 1]; not a probability that was measured."""
    share: float
    """Share of the sentences in which it was found, in (0, 1]."""
    evidence: str
    """The first sentence in which it is that sure, shortened."""


def sentences_of(text: str, *, limit: int = 400) -> list[str]:
    """Sentences and lines of a text that hold letters or digits, at most `limit`."""
    pieces = _BREAK.split(text[: limit * 2000])
    return [piece.strip() for piece in pieces if any(map(str.isalnum, piece))][:limit]


def find_intents(sentences: list[str]) -> list[Intent]:
    """Intents of a text, the surest and most frequent first.

    A sentence may have several (a request that reports an error), or none but ``report``.
    """
    met: dict[str, list[tuple[float, str]]] = {}
    for sentence in sentences:
        best: dict[str, float] = {}
        for intent, confidence, pattern in _RULES:
            if best.get(intent, 0.0) < confidence and pattern.search(sentence[:2000]):
                best[intent] = confidence
        for intent, confidence in (best or {REPORT: 0.5}).items():
            met.setdefault(intent, []).append((confidence, sentence))
    found = []
    for intent, hits in met.items():
        confidence, evidence = max(hits, key=lambda hit: hit[0])
        share = round(len(hits) / len(sentences), 4)
        found.append(Intent(intent, confidence, share, _short(evidence)))
    return sorted(found, key=lambda intent: (-intent.confidence * (0.5 + intent.share), intent.intent))


def _short(sentence: str) -> str:
    text = " ".join(sentence.split())
    return text if len(text) <= 120 else text[:117] + "..."
