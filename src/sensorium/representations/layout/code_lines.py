"""What a line of code is, told at a glance: signature, import, comment, closing bracket."""

import re
from functools import lru_cache

_LOOK = 300
"""Characters of a line that are looked at: no pattern meets a line long enough to be slow on."""
_SIGNATURE = re.compile(
    r"\s*(?:export |default |public |private |protected |internal |static |final |abstract |async |"
    r"pub(?:\([\w:]+\))? |"
    r"unsafe |inline |virtual |override |open |data |sealed |const |extern |local )*"
    r"(?:def|class|fn|func|function\*?|fun|struct|enum|trait|impl|interface|module|namespace|type|object|protocol|"
    r"extension|macro_rules!|record|sub|proc|procedure|subroutine|program|defmodule|defp?|"
    r"create (?:table|view|function))\b"
    r"(?!\s*[=,.)\]:])",
    re.I,
)
_C_FUNCTION = re.compile(
    r"\s*(?!(?:return|if|else|for|while|switch|case|do|throw|new|delete|await|yield)\b)"
    r"(?:[\w:<>,*&\[\]~]+\s+)+[*&]*[\w:~]+\([^;]*\)?\s*(?:const|noexcept|override|throws [\w., ]+)?\s*\{?\s*$"
)
_ARROW = re.compile(
    r"\s*(?:export )?(?:const|let|var) \w+ = (?:async )?(?:function\b|\([^)]*\) ?(?::[^=]+)?=>|\w+ =>)"
)
_METHOD = re.compile(
    r"\s+(?:async |static |get |set |\*|#)*(?!(?:if|for|while|switch|catch|function|"
    r"return)\b)\w+\([^;]*\)\s*\{\s*$"
)
_IMPORT = re.compile(
    r"\s*(?:import\b|from \S+ import\b|#\s*include\b|use [\w:{]|using [\w.]+;|require\b|package \w|"
    r"extern crate\b|"
    r"(?:const|let|var) .* = require\()"
)
_DECORATOR = re.compile(r"\s*(?:@\w|#\[|\[\w+\]$)")
_SIGNATURE_WORDS_TEXT = (
    "export default public private protected internal static final abstract async unsafe inline "
    "virtual override open data sealed const extern local def class fn func fun struct enum trait "
    "impl interface module namespace type object protocol extension macro_rules! record sub proc "
    "procedure subroutine program defmodule defp pub create function"
)
_SIGNATURE_WORDS = frozenset(_SIGNATURE_WORDS_TEXT.split())
"""First words of a line that may begin a signature: most lines are told apart by a look into this set."""
_IMPORT_WORDS_TEXT = "import from #include # use using require package extern const let var"
_IMPORT_WORDS = frozenset(_IMPORT_WORDS_TEXT.split())
_COMMENT = re.compile(
    r"\s*(?:#(?!include|\[|!\[|if|define|else|end|pragma)|//|/\*|\*(?:\s|/|$)|--(?:\s|$)|;;|%)"
)
_TELLING_TEXT = (
    "return return; raise throw assert panic yield except except: catch TODO TODO: FIXME FIXME: XXX HACK BUG"
)
_TELLING = frozenset(_TELLING_TEXT.split())
_CONSTANT = re.compile(
    r"(?:(?:export|pub|public|private|static|final|const|let|var|val|constexpr|inline|unsigned) )*"
    r"(?:[\w:<>]+ )?[A-Za-z_]\w*\s*(?::[^=]{1,60})?(?::?=|<-)\s*[-+]?(?:\d|[\"'])"
)
CONSTANT_WEIGHT = 2.6
"""Of a name at top level that is given a number or a text: settings stand there, and nowhere else."""
_CLOSING = re.compile(r"\s*(?:[)\]};,]+|end|pass|fi|done|esac|else:?|try:?|\} else \{|begin|do)\s*;?\s*$")
_BRACE_LANGUAGES_TEXT = (
    "c cpp cuda java csharp javascript typescript tsx go rust kotlin scala swift dart php objc zig d groovy"
)
_BRACE_LANGUAGES = frozenset(_BRACE_LANGUAGES_TEXT.split())


def indent_of(text: str) -> int:
    """Number of characters before the first that is no blank."""
    return len(text) - len(text.lstrip())


def is_brace_language(language: str | None) -> bool:
    """Whether bodies stand in braces, so that functions may begin without a keyword."""
    return language in _BRACE_LANGUAGES


@lru_cache(maxsize=65_536)
def is_signature(text: str, is_brace: bool) -> bool:
    """Whether a line begins a function, class or the like.

    Args:
        text: The line, not blank.
        is_brace: See `is_brace_language`.
    """
    first = text.split(None, 1)[0].lower()
    if (first in _SIGNATURE_WORDS or first.startswith(("pub(", "function*"))) and _SIGNATURE.match(
        text[:_LOOK]
    ):
        return True
    if not is_brace or len(text) > _LOOK or "(" not in text:
        return False
    ending = text.rstrip()[-1]
    return ending in "{),>" and bool(_ARROW.match(text) or _METHOD.match(text) or _C_FUNCTION.match(text))


@lru_cache(maxsize=65_536)
def weight_of(text: str) -> float:
    """Weight of a line that is no signature and not blank."""
    words = text[:_LOOK].split()
    first = words[0]
    if len(words) <= 3 and len(text) <= _LOOK and _CLOSING.match(text):
        return 0.2
    if first in _IMPORT_WORDS and _IMPORT.match(text[:_LOOK]):
        return 1.4
    if first[0] in "@#[" and _DECORATOR.match(text[:_LOOK]):
        return 1.3
    if text[:1] not in " \t" and len(text) <= _LOOK and _CONSTANT.match(text):
        return CONSTANT_WEIGHT
    is_telling = not _TELLING.isdisjoint(words)
    if first[0] in "#/*-;%" and _COMMENT.match(text[:_LOOK]):
        return 1.2 if is_telling else 0.5
    return 1.4 if is_telling else 1.1 if text[:1] not in " \t" else 1.0
