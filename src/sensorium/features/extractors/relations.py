"""Subject-verb-object relations from a dependency parse (labels of spaCy's English pipelines)."""

from collections.abc import Iterator
from typing import Any, NamedTuple

_SUBJECTS = frozenset(("nsubj", "csubj"))
_PASSIVE_SUBJECTS = frozenset(("nsubjpass", "csubjpass"))
_OBJECTS = frozenset(("dobj", "obj", "attr", "acomp", "oprd", "dative"))


class Relation(NamedTuple):
    """Who does what to whom."""

    subject: str
    """Empty where the sentence does not say (a passive without an agent, a command)."""
    verb: str
    """Base form, with its particle and, before a prepositional object, its preposition: ``run on``."""
    object: str
    """Empty for a verb without one."""
    is_negated: bool
    start: int
    """Position of the verb, characters."""
    end: int


def find_relations(document: Any) -> list[Relation]:
    """Relations of every verb that has a subject or an object, in the order of the verbs.

    A verb that is joined to another (``stopped and restarted``) shares its subject; of ``A and B`` each is
    taken by itself; a passive is turned round (``is read by X``: X read it).

    Args:
        document: A parsed spaCy ``Doc``.
    """
    chunks = {chunk.root.i: chunk for chunk in document.noun_chunks}
    found = []
    for verb in document:
        if verb.pos_ not in ("VERB", "AUX") or verb.dep_ in ("aux", "auxpass"):
            continue
        subjects, objects = _arguments(verb)
        name = " ".join([verb.lemma_, *(child.text for child in verb.children if child.dep_ == "prt")])
        is_negated = any(child.dep_ == "neg" for child in verb.children)
        pairs = [(s, o) for s in subjects or [None] for o in objects or [(None, "")]]
        for subject, (target, preposition) in pairs:
            if subject is None and target is None:
                continue
            found.append(
                Relation(
                    subject=_phrase(subject, chunks),
                    verb=f"{name} {preposition}".strip(),
                    object=_phrase(target, chunks),
                    is_negated=is_negated,
                    start=verb.idx,
                    end=verb.idx + len(verb.text),
                )
            )
    return found


def _arguments(verb: Any) -> tuple[list[Any], list[tuple[Any, str]]]:
    """Subjects, and objects each with the preposition before it."""
    subjects = _children(verb, _SUBJECTS)
    objects = [(child, "") for child in _children(verb, _OBJECTS)]
    objects += [(o, prep.lemma_) for prep in _prepositions(verb) for o in _children(prep, {"pobj"})]
    if passive := _children(verb, _PASSIVE_SUBJECTS):
        objects = [(child, "") for child in passive] + objects
        agents = [child for child in verb.children if child.dep_ == "agent"]
        subjects = [found for agent in agents for found in _children(agent, {"pobj"})]
    elif not subjects and verb.dep_ == "conj" and verb.head.pos_ in ("VERB", "AUX"):
        subjects = _arguments(verb.head)[0]
    return subjects, objects


def _children(token: Any, labels: frozenset[str] | set[str]) -> list[Any]:
    """Children with one of the labels, and what is joined to them by ``and`` or ``or``."""
    return [each for child in token.children if child.dep_ in labels for each in _joined(child)]


def _joined(token: Any) -> Iterator[Any]:
    yield token
    for child in token.children:
        if child.dep_ == "conj" and child.pos_ == token.pos_:
            yield from _joined(child)


def _prepositions(verb: Any) -> list[Any]:
    return [child for child in verb.children if child.dep_ == "prep"]


def _phrase(token: Any, chunks: dict[int, Any]) -> str:
    """The noun phrase around a token, without its article; on one line."""
    if token is None:
        return ""
    chunk = chunks.get(token.i)
    words = [token] if chunk is None else list(chunk)
    while len(words) > 1 and words[0].dep_ in ("det", "punct"):
        words = words[1:]
    return " ".join("".join(word.text_with_ws for word in words).split())
