"""Splitting raw text into words, with offsets: `text[token.start:token.end] == token.text`.

English is split like the Penn Treebank (`do n't`, `John 's`, `( U.S. )`), because the datasets of
the field are; other languages by their spaces and punctuation. Nothing is normalized: a model reads
the characters as they are. Text that is already tokenized stays unchanged.

Languages without spaces are not segmented into words. Each Han character is a token, and so is a
run of kana; Thai, Lao, Khmer and Burmese are split at spaces only, since anything better takes a
dictionary: pass lists of words instead. Control characters and invisible marks (zero-width space,
byte order mark, direction marks) separate words like a space and belong to no token; the joiners
that spelling needs stay inside their word. Time is linear in the length of any text.
"""

import re
import unicodedata
from functools import cache
from itertools import groupby
from typing import NamedTuple

from elmokit.text.abbreviations import owns_period


class Token(NamedTuple):
    """A word and its position in the text, in code points."""

    text: str
    start: int
    end: int


def split_words(text: str) -> list[str]:
    """Return the words of a text as strings, without their positions."""
    return [token.text for token in tokenize(text)]


def tokenize(text: str) -> list[Token]:
    """Return the words of a text in order, each with its position in the text.

    >>> [token.text for token in tokenize("She didn't go (yet).")]
    ['She', 'did', "n't", 'go', '(', 'yet', ')', '.']
    """
    tokens: list[Token] = []
    match = _pattern(text.isascii()).match
    position = 0
    while (found := match(text, position)) is not None:
        kind = found.lastgroup
        assert kind is not None  # every alternative has a name
        start, end = found.span(kind)
        if kind == "address":
            end = _trim_address(text, start, end)
        elif kind == "word":
            if text.startswith(".", end) and _period_belongs(text, start, end, tokens):
                end += 1
            for cut in _cuts(text, start, end):
                tokens.append(Token(text[start:cut], start, cut))
                start = cut
        elif kind == "plain" and (cut := _COMPOUNDS.get(found[kind].lower(), 0)):
            tokens.append(Token(text[start : start + cut], start, start + cut))
            start += cut
        tokens.append(Token(text[start:end], start, end))
        position = end
    return tokens


# Two words written as one, and the length of the first, as in the Treebank.
_COMPOUNDS = {"cannot": 3, "gonna": 3, "gotta": 3, "wanna": 3, "gimme": 3, "lemme": 3}
_COMPOUNDS |= {f"{mark}{word}": 2 for mark in "'’" for word in ("tis", "twas", "twere", "twould")}

_CONTRACTION = re.compile(r"(?:['’]?n['’`´]t|['’`´](?:s|d|m|ll|re|ve))\Z", re.IGNORECASE)
_AFTER_PERIOD = re.compile(r"[^\S\n]*\n?[^\S\n]*(\S{0,16})")


def _period_belongs(text: str, start: int, end: int, tokens: list[Token]) -> bool:
    if text.startswith("..", end):
        return False  # an ellipsis
    after = _AFTER_PERIOD.match(text, end + 1)
    assert after is not None  # all of it is optional
    before = tokens[-1].text if tokens else ""
    # A longer word is not an abbreviation, and copying it at each period would cost time.
    return owns_period(text[max(start, end - 40) : end], before, after[1])


def _cuts(text: str, start: int, end: int) -> list[int]:
    """Return the positions inside a word where contractions and compounds are split."""
    if end - start <= 7 and (cut := _COMPOUNDS.get(text[start:end].lower())):
        return [start + cut]
    cuts: list[int] = []
    while (found := _CONTRACTION.search(text, max(start, end - 4), end)) is not None:
        end = found.start()
        if end == start or not text[end - 1].isalnum():
            break
        cuts.append(end)
    return cuts[::-1]


def _trim_address(text: str, start: int, end: int) -> int:
    """Return the end of an address, without the punctuation of the sentence around it."""
    # Brackets belong to an address only in pairs: (see https://en.wikipedia.org/wiki/Set_(game)).
    unpaired = {
        close: text.count(close, start, end) - text.count(opening, start, end)
        for opening, close in ("()", "[]", "{}")
    }
    while end > start + 1:
        last = text[end - 1]
        if unpaired.get(last, 0) > 0:
            unpaired[last] -= 1
        elif last not in ".,;:!?'’…*_|":
            break
        end -= 1
    return end


_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_HAN += "\U00020000-\U0003ffff"
_HIRAGANA = "\u3041-\u309f\u30fc"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
# Soft hyphen, zero-width joiner and non-joiner, word joiner: spelling, when inside a word.
_JOINERS = "\u00ad\u200c\u200d\u2060"
_INVISIBLE = (
    "\x00-\x1f\x7f-\x9f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u00ad"
)

_TOP_DOMAINS = "com|org|net|edu|gov|mil|info|biz|io|tv|uk|de|fr|nl|eu|au|jp|cn|ru|ch"
_FACES = r"""
    [:;=][-^~'][)(\]\[DPpOo/\\|*]+(?![\w])
  | (?<![^\s!?.,…])[:;=][)(\]\[DPpOo/\\|*3]+(?!\w)
  | (?<![^\s])\(-?[:=](?!\S)
  | </?3+(?!\w) | \^_+\^ | -_+-(?!\w) | ¯\\_\(ツ\)_/¯
"""

# Each alternative matches a whole run or looks ahead a bounded distance, which keeps it linear.
_GRAMMAR = r"""
[\s{invisible}]*(?:
  (?P<plain> [A-Za-z]+(?=[\ ,;)\n]) )
| (?P<address>
    (?i:https?|ftp)://[^\s{invisible}<>"“”«»]*
  | (?i:www\.)[^\s{invisible}<>"“”«»]+
  | (?i:mailto:)?[^\W_][\w.+%-]{{0,63}}@(?:[\w-]{{1,63}}\.){{1,8}}[A-Za-z]{{2,24}}
  | (?:[A-Za-z0-9][A-Za-z0-9-]{{0,62}}\.){{1,8}}(?i:{top_domains})(?![\w-])
      (?:[/?#][^\s{invisible}<>"“”«»]*)?
  )
| (?P<fixed>
    (?i:w/out|w/|km/h)(?![\w/])
  | [Cc]\+\+(?!\w) | [CFJ]\#(?!\w) | [A-D]{{1,3}}\+(?!\w)           # languages, ratings
  | (?:US|CA|AU|NZ|HK|NT|C|A|S|R)\$(?![A-Za-z])
  | -[LR][RCS]B-
  | </?[A-Za-z][A-Za-z0-9_]{{0,15}}/?>
  | &(?:[A-Za-z]{{2,8}}|\#x?[0-9A-Fa-f]{{1,6}});
  | (?<!\w)[@\#](?=\d*[^\W\d])\w+(?:[-.](?=[a-z])\w+){{0,4}}
  | [°º][CFK](?!\w)
  )
| (?P<face> {faces} )
| (?P<word>
    ['’](?:tis|Tis|twas|Twas|twere|Twere|twould|Twould)(?!\w)
  | ['’‘]\d\ds?(?!\w)                                              # the '90s, class of '07
  | ['’‘](?:em|Em|EM|til|cause|Cause|bout|nuff|n['’][tT]|n['’]?)(?!\w)
  | ['’`´](?i:s|d|m|t|ll|re|ve)(?!\w)
  | (?:(?<![\w)\]%])[-+−±](?=\.?\d))? (?:(?<![\w.])\.(?=\d))?       # -5, .22
    {piece}
    (?:
      (?: [-‐‑_'’]
        | (?<=\d)[.,:/](?=\d)
        | (?<=(?<!\w)[^\W\d_])\.(?=[^\W\d_](?!\w))                   # U.S, e.g, J.R.R
        | (?<=[A-Za-z0-9])\.(?=[a-z])                                # notes.txt, os.path
        | (?<=Ph)\.(?=D) | (?<=\b[BMD])\.(?=(?:Sc|Ed|Phil|Eng|Com|Mus)\b)
        | \.-(?=[a-z])                                                # U.S.-led
        | (?<=[A-Z])&(?=[A-Z]) | (?<=(?<![\w&/-])\w)[&/](?=\w(?!\w))   # AT&T, n/a
        | [`´](?=(?:s|t|d|m|ll|re|ve)\b)                             # I`m
        | (?<=[lL])·(?=[lL])                                         # Catalan
        | (?<=[א-ת])["״׳](?=[א-ת])                                   # Hebrew acronyms
      ) {piece}
    ){{0,99}}
    (?:-(?=\s*,|\s+(?:and|or|to)\b))?                                # pre- and post-war
  )
| (?P<han> [{han}][{marks}]* )
| (?P<kana> [{hiragana}]+ | [{katakana}]+ )
| (?P<run>
    [.…]{{2,}} | [!?]+ | [-=]{{1,8}}> | <[-=]{{1,8}}
  | -+ | —+ | –+ | \*+ | =+ | _+ | ~+ | \#+ | \++ | <+ | >+ | \|+ | \^+ | \${{2,}}
  | `{{2}} | '{{2}} | ‘{{2}} | ’{{2}}
  )
| (?P<sign>
    [\U0001f1e6-\U0001f1ff]{{2}}                                     # a flag
  | [^\s{invisible}][{marks}{modifiers}]*
      (?:\u200d[^\w\s{invisible}][{marks}{modifiers}]*){{0,16}}
  )
)
"""


@cache
def _pattern(ascii_only: bool) -> re.Pattern[str]:
    """Return the compiled grammar, which is built at first use.

    Going through the Unicode character table takes a moment; ASCII text does not need that.
    """
    if ascii_only:
        marks, letters = "\u0300-\u036f", "0-9A-Za-z"
    else:
        # `\w` lacks the combining marks, without which words of Hindi or Thai would be cut up.
        marks = _ranges({"Mn", "Mc", "Me"})
        letters = _ranges({"Mn", "Mc", "Me", "Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No"})
    piece = f"[{letters}][{letters}{_JOINERS}]*"
    return re.compile(
        _GRAMMAR.format(
            invisible=_INVISIBLE,
            top_domains=_TOP_DOMAINS,
            faces=_FACES,
            piece=piece,
            han=_HAN,
            hiragana=_HIRAGANA,
            katakana=_KATAKANA,
            marks=marks,
            modifiers="\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f",
        ),
        re.VERBOSE,
    )


def _ranges(categories: set[str]) -> str:
    """Return the characters of some Unicode categories, except Han and kana, as a regex class."""
    apart = re.compile(f"[{_HAN}{_HIRAGANA}{_KATAKANA}]")
    # Everything beyond these is Han; the second range is the variation selectors.
    chars = map(chr, (*range(0x20000), *range(0xE0100, 0xE01F0)))
    codes = [ord(c) for c in chars if unicodedata.category(c) in categories and not apart.match(c)]
    # In a run of consecutive codes, code minus index is constant.
    runs = [list(run) for _, run in groupby(enumerate(codes), lambda pair: pair[1] - pair[0])]
    return "".join(f"{chr(run[0][1])}-{chr(run[-1][1])}" for run in runs)
