"""Abbreviations: which words include the period after them.

The tokenizer and the sentence splitter share this list. Its hard cases are ambiguous: `No.` is an
abbreviation before a number and a sentence elsewhere, `Sun.` is a day before a date, `J.` an
initial before a name. Those are in sets of their own, each with the context that decides. Knows
English, and the initials and dotted letters of any alphabet; knows nothing about files, tokens or
sentences.
"""

import re


def _forms(words: str, upper: bool = True) -> frozenset[str]:
    """Return the words as written and, with `upper`, in capitals (`INC.`) as well."""
    listed = words.split()
    return frozenset(listed + [word.upper() for word in listed if upper])


# Titles precede a name, so they never end a sentence.
TITLES = _forms(
    "Mr Mrs Ms Mx Dr Drs Prof Hon Messrs Mme Mlle Msgr Mgr Fr Supt Capt Cpt Cmdr Cdr Lt Sgt Cpl Pvt"
    " Brig Gov Gens Cols Sens Reps Revs Profs Mt Mts"
) | _forms("Rev Gen Col Maj Adm Sen Rep Pres Det Insp Sec-Gen Maj-Gen Lt-Gen Lt-Col", upper=False)

# Always keep their period; a sentence may end after them.
ALWAYS = (
    _forms("etc vs al cf viz approx dept esp incl misc eg ie ca seq ibid et-al resp")
    | _forms("Etc Vs Cf Viz Approx Esp Incl Misc Eg Ie Resp", upper=False)
    | _forms("Inc Ltd Co Cos Corp Bros Assn Assoc Dept Univ Intl Natl Govt Pty Jr Sr Esq")
    | _forms("St Sts Ste Ft Ave Blvd Rd Hwy Pkwy Attn Ph Hosp Mfg Bldg Sq Vols Mss Bp Abp")
    | _forms("Jan Feb Apr Aug Sep Sept Oct Nov Dec Tue Tues Thu Thur Thurs Fri", upper=False)
    | _forms("Ala Ariz Ark Calif Colo Conn Fla Ga Kan Kans Ky Md Mich Minn Mont", upper=False)
    | _forms("Neb Nebr Nev Okla Tenn Tex Va Vt Wis Wisc Wyo Que Ont", upper=False)
)

# An abbreviation only before a number: p. 5, No. 7, Fig. 2, c. 1920, Vol. II.
BEFORE_NUMBER = _forms(
    "no nos vol vols fig figs sec sect art ch chap par para pp eq eqs ext tel fl"
)
BEFORE_NUMBER |= frozenset(word.capitalize() for word in BEFORE_NUMBER)
BEFORE_NUMBER |= _forms("p c b d r s v n m l ver ed bk pt pl op ser ref est Est", upper=False)

# Days and months that are also words or names: only before a date.
BEFORE_DATE = _forms("Mar Jun Jul Mon Wed Sat Sun", upper=False)

# States that are also words: only after a comma (Pittsburgh, Pa.).
AFTER_COMMA = _forms("Pa La Mo Ill Ind Miss Mass Wash Ore Del Cal Me Penn", upper=False)

# Only as the first word in brackets: (lit. "broken"), (est. 1901), (pop. 300).
AFTER_BRACKET = _forms("lit pop est trans abbr pron ed eds orig aka née", upper=False)

# Units: after a number, with the sentence going on (6 ft. tall).
UNITS = _forms("ft in lb lbs oz yd yds mi sq cu hr hrs min mins sec secs yr yrs", upper=False)

# Words that often begin a sentence and seldom a name: `the U.S. He` versus `the U.S. Navy`.
STARTERS = _forms(
    "The A An This That These Those He She It We They I You His Her Its Their Our My Your In On At"
    " By For From With After Before During When While Where Whether Although Though As If Since"
    " Because Until Unless However But And Or So Yet Then There Here Thus Therefore Meanwhile"
    " Moreover Furthermore Also Another Other Others Some Many Most Much More Each Every Both All"
    " Several Few One Two Three What Who Why How Which No Not Now To Under Upon Within Without"
    " Between Among Once Despite Following According Only Even Such Of Over Through Later Today"
    " Finally Eventually Nevertheless Subsequently Additionally Nor Neither Either Just Like Nobody"
    " Everyone Someone Something Nothing Perhaps Maybe Still Soon Again Instead Indeed Let Is Was"
    " Are Were Do Does Did Have Has Had Can Could Would Should Will Yes Oh Well Unlike",
    upper=False,
)

_NUMBER = re.compile(r"\d|[IVXLC]+\b")
_DATE = re.compile(r"\d|,|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)")
_FIRST_WORD = re.compile(r"[^\W\d_]+")
# Letters with periods between them: U.S, e.g, т.е, Ph.D, non-U.S (without the last period).
_DOTTED = re.compile(r"(?:^|[-.])[^\W\d_][a-z]{0,3}\.[^\W\d_][a-z]{0,3}\Z")


def starts_sentence(after: str) -> bool:
    """Return whether the text begins with a word that usually begins a sentence."""
    first = _FIRST_WORD.match(after)
    # A letter with a period is an initial (`J. A. Smith`), not the article.
    return (
        first is not None
        and first.group() in STARTERS
        and after[first.end() : first.end() + 1] != "."
    )


def is_dotted(word: str) -> bool:
    """Return whether the word is letters with periods between them, such as `U.S` or `Ph.D`."""
    return "." in word and _DOTTED.search(word[-12:]) is not None


def owns_period(word: str, before: str, after: str) -> bool:
    """Return whether the period after `word` is part of the word.

    Args:
        word: The word without the period.
        before: The word or token before it; empty at the beginning of the text.
        after: The text after the period and any spaces, or its first few characters; empty at the
            end of the text or paragraph.
    """
    if word in TITLES or word in ALWAYS or is_dotted(word):
        return True
    if len(word) == 1 and word.isupper():
        return _is_initial(word, before, after)
    if word in AFTER_COMMA and before.endswith(","):
        return True
    if word in AFTER_BRACKET and before.endswith(("(", "[")):
        return True
    if word in BEFORE_DATE:
        return _DATE.match(after) is not None
    if word in UNITS and before[-1:].isdigit() and after[:1].islower():
        return True
    if word in BEFORE_NUMBER:
        parties = word == "v" and _is_name(before) and after[:1].isupper()  # Roe v. Wade
        return parties or _NUMBER.match(after) is not None
    return False


def _is_name(before: str) -> bool:
    return before.lstrip("\"'“‘([")[:1].isupper()


def _is_initial(letter: str, before: str, after: str) -> bool:
    if after[:1] and after[0] in ",&;":
        return letter != "I"
    if not after[:1].isalpha() or starts_sentence(after):
        return False
    if letter == "I":
        # `Vladimir I. Lenin`, but not `So do I. Tom too` nor `World War I. Germany`.
        return _is_name(before) and before not in {"War", "Part", "Act", "Book", "Phase", "Class"}
    return True
