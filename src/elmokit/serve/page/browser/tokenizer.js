// Splitting English into words like elmokit's tokenizer (text/tokenize.py), for plain sentences. Rare
// cases, such as addresses, faces and scripts without spaces, are simpler here. Where words are already
// separated by spaces, both give the same.

const TITLES = "Mr Mrs Ms Mx Dr Drs Prof Hon Messrs Mme Mlle Capt Lt Sgt Gov Mt Rev Gen Col Maj Adm Sen Rep Pres";
const ALWAYS = "etc vs al cf viz approx dept Inc Ltd Co Corp Bros Jr Sr St Ave Blvd Rd Jan Feb Apr Aug Sep Sept Oct Nov Dec eg ie";
const WITH_PERIOD = new Set(`${TITLES} ${ALWAYS}`.split(" "));
const BEFORE_NUMBER = new Set("no No nos vol Vol fig Fig p pp ch sec c".split(" "));
const COMPOUNDS = { cannot: 3, gonna: 3, gotta: 3, wanna: 3, gimme: 3, lemme: 3, "'tis": 2, "'twas": 2, "’tis": 2, "’twas": 2 };
const CONTRACTION = /(?:n['’]t|['’](?:s|d|m|ll|re|ve))$/i;
const STARTERS = new Set("The A An This That These Those He She It We They I You His Her Its Their Our My Your In On At By For From With After Before When But And Or So Then There".split(" "));

const PATTERN = new RegExp(
  [
    "https?://[^\\s<>\"“”«»]*[^\\s<>\"“”«».,;:!?')]", // an address
    "['’](?:tis|twas)\\b",
    "['’](?:s|d|m|t|ll|re|ve)(?![\\p{L}\\p{N}])",
    "['’]\\d\\ds?(?![\\p{L}\\p{N}])", // the '90s
    "(?<![\\p{L}\\p{N})\\]%])[-+−]?(?:\\d[\\d.,:/]*\\d|\\d)(?:[\\p{L}][\\p{L}\\p{N}-]*)?", // 3,500, 1990s
    "\\p{L}(?:\\.\\p{L})+(?![\\p{L}\\p{N}])", // U.S
    "[\\p{L}\\p{N}][\\p{L}\\p{N}\\p{M}]*(?:[-‐‑_'’][\\p{L}\\p{N}][\\p{L}\\p{N}\\p{M}]*)*", // well-known, O'Neil
    "\\.{2,}|…+|[!?]+|--+|—+|–+|''|``",
    "[^\\s]",
  ].join("|"),
  "gu",
);

/** The words of a sentence. */
export function tokenize(text) {
  const words = [];
  for (const match of text.matchAll(PATTERN)) {
    const [word] = match;
    if (word === "." && ownsPeriod(words.at(-1), text, match.index)) {
      words.push(`${words.pop()}.`);
      continue;
    }
    words.push(...split(word));
  }
  return words;
}

function ownsPeriod(word, text, at) {
  if (!word || !text.slice(0, at).endsWith(word)) return false;
  const after = text.slice(at + 1).trimStart();
  if (WITH_PERIOD.has(word) || /^\p{L}(?:\.\p{L})+$/u.test(word)) return true;
  if (/^\p{Lu}$/u.test(word) && word !== "I") return /^\p{L}/u.test(after) && !STARTERS.has(/^\p{L}+/u.exec(after)?.[0]);
  return BEFORE_NUMBER.has(word) && /^\d/.test(after);
}

/** A word with its contractions and compounds cut off: did n't, John 's, can not. */
function split(word) {
  const cut = COMPOUNDS[word.toLowerCase()];
  if (cut) return [word.slice(0, cut), word.slice(cut)];
  const ends = [];
  for (let found; (found = CONTRACTION.exec(word)) && found.index > 0; ) {
    ends.unshift(word.slice(found.index));
    word = word.slice(0, found.index);
  }
  return [word, ...ends];
}
