"""The published models: their names, and where their files are.

Everything here comes from a public source, and every entry names it. Sizes and checksums are None
where no source gives them: then the checksum of the first download is kept and compared at every
use (see `cache.py`). Knows nothing about downloading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class RemoteFile:
    """One file of a published model."""

    name: str
    """Name on disk."""
    addresses: tuple[str, ...]
    """Where it can be downloaded; the first address that works is used."""
    bytes: int | None = None
    """Size in bytes, if it is known."""
    sha256: str | None = None
    """Checksum, if it is known."""
    md5: str | None = None
    """Another checksum, where only this one was published."""
    optional: bool = False
    """The model is complete without it."""


@dataclass(frozen=True)
class PublishedModel:
    """A published model that can be loaded by its name."""

    name: str
    """Name to load it by, such as `small`."""
    description: str
    """Architecture, training text and authors, in a phrase."""
    language: str
    """ISO 639 code, of two letters where there is one."""
    files: tuple[RemoteFile, ...]
    """Files to download."""
    source: str
    """Public source of the addresses."""
    page: str
    """Web page about the model."""
    aliases: tuple[str, ...] = ()
    """Further names to load it by."""
    proteins: bool = False
    """Whether it was trained on proteins instead of text."""

    @property
    def bytes(self) -> int | None:
        """Size of the files of known size in bytes; None if none is known."""
        return sum(file.bytes or 0 for file in self.files) or None


def list_models(search: str | None = None) -> list[PublishedModel]:
    """Return the published models, or those whose name, language or description match.

    The command `elmo models` does this.

    Args:
        search: Text to look for, in any case; all models if None.
    """
    wanted = (search or "").lower()
    return [m for m in PUBLISHED if wanted in f"{m.name} {m.language} {m.description}".lower()]


def find_published(name: str) -> PublishedModel | None:
    """Return the model of this name or alias, in any case; None if there is none.

    `nlpl-N` is entry N of the NLPL repository.
    """
    key = name.strip().lower()
    if key in _BY_NAME:
        return _BY_NAME[key]
    numbered = re.fullmatch(r"nlpl-(\d{1,4})", key)
    return _nlpl_entry(int(numbered[1])) if numbered else None


def find_by_language(language: str) -> list[PublishedModel]:
    """Return the models of a language, given by its ISO 639 code or its English name.

    Args:
        language: A code (`"nl"`, also with a region: `"pt-BR"`) or a name (`"Dutch"`), in any case.
    """
    key = re.sub(r"[\s_]+", "-", language.strip().lower())
    code = _LANGUAGE_CODES.get(key, key)
    return [m for m in PUBLISHED if m.language in (code, code.partition("-")[0])]


def known_names() -> list[str]:
    """Return all names and aliases that `find_published` knows, in lower case."""
    return list(_BY_NAME)


# -- AllenNLP: the authors' own models ---------------------------------------------------------
#
# Addresses: elmo.html of github.com/allenai/allennlp-website, the source of allennlp.org/elmo. The
# same bucket under its newer address (AllenNLP 2.10, elmo_token_embedder.py) is tried second.
# The size of `original`: progress bars of downloads in public notebooks, and the file list of
# huggingface.co/lysandre/elmo-2x4096_512_2048cnn_2xhighway (336 bytes, 374 MB). Size and checksum
# of `small`: from a copy of the file.

_BUCKET = (
    "https://s3-us-west-2.amazonaws.com/allennlp/models/",
    "https://allennlp.s3.amazonaws.com/models/",
)
_SITE = "allennlp-website/elmo.html"
_SITE_PAGE = "https://allenai.org/allennlp/software/elmo"
_BILLION = "One Billion Word Benchmark (news, 800M words)"


def _bucket_file(
    path: str, name: str = "", bytes: int | None = None, sha256: str | None = None
) -> RemoteFile:
    addresses = tuple(base + path for base in _BUCKET)
    return RemoteFile(name or path.rpartition("/")[2], addresses, bytes, sha256)


def _english(
    name: str,
    shape: str,
    text: str,
    options_bytes: int | None = None,
    weights_bytes: int | None = None,
    weights_sha256: str | None = None,
    aliases: tuple[str, ...] = (),
) -> PublishedModel:
    stem = f"elmo/{shape}/elmo_{shape}"
    return PublishedModel(
        name,
        f"{shape}, trained on {text}",
        "en",
        (
            _bucket_file(f"{stem}_options.json", bytes=options_bytes),
            _bucket_file(f"{stem}_weights.hdf5", bytes=weights_bytes, sha256=weights_sha256),
        ),
        _SITE,
        _SITE_PAGE,
        (shape, f"elmo_{shape}", *aliases),
    )


def _contributed(
    name: str,
    language: str,
    description: str,
    options: str,
    weights: str,
    aliases: tuple[str, ...] = (),
) -> PublishedModel:
    return PublishedModel(
        name,
        description,
        language,
        (_bucket_file(options), _bucket_file(weights)),
        _SITE,
        _SITE_PAGE,
        aliases,
    )


def _pair_elsewhere(
    name: str, language: str, description: str, base: str, source: str, page: str
) -> PublishedModel:
    files = tuple(RemoteFile(file, (base + file,)) for file in ("options.json", "weights.hdf5"))
    return PublishedModel(name, description, language, files, source, page)


_ALLENNLP = (
    _english(
        "small",
        "2x1024_128_2048cnn_1xhighway",
        _BILLION,
        weights_bytes=54_402_456,
        weights_sha256="747ba97abce8a5f446558369e10bb0f7931437a46867476fdd156f5d7f576229",
    ),
    _english("medium", "2x2048_256_2048cnn_1xhighway", _BILLION),
    _english(
        "original",
        "2x4096_512_2048cnn_2xhighway",
        _BILLION,
        options_bytes=336,
        weights_bytes=374_434_792,
    ),
    _english(
        "original-5.5B",
        "2x4096_512_2048cnn_2xhighway_5.5B",
        "Wikipedia and news (5.5B words)",
        aliases=("5.5b", "large"),
    ),
    _contributed(
        "pubmed",
        "en",
        "2x4096_512_2048cnn_2xhighway, trained on PubMed, by Matthew Peters",
        "elmo/contributed/pubmed/elmo_2x4096_512_2048cnn_2xhighway_options.json",
        "elmo/contributed/pubmed/elmo_2x4096_512_2048cnn_2xhighway_weights_PubMed_only.hdf5",
    ),
    _contributed(
        "portuguese",
        "pt",
        "trained on Wikipedia, by the Federal University of Goiás",
        "elmo/contributed/pt/wikipedia/options.json",
        "elmo/contributed/pt/wikipedia/elmo_pt_weights.hdf5",
        ("portuguese-wikipedia",),
    ),
    _contributed(
        "portuguese-brwac",
        "pt",
        "trained on the brWaC corpus, by the Federal University of Goiás",
        "elmo/contributed/pt/brwac/options.json",
        "elmo/contributed/pt/brwac/elmo_pt_weights_dgx1.hdf5",
    ),
    _pair_elsewhere(
        "japanese",
        "ja",
        "by ExaWizards (Enkhbold Bataa, Joshua Wu)",
        "https://exawizardsallenlp.blob.core.windows.net/data/",
        _SITE,
        _SITE_PAGE,
    ),
    _pair_elsewhere(
        "german",
        "de",
        "trained on Wikipedia with its comments, by Philip May and T-Systems on site",
        "https://github.com/t-systems-on-site-services-gmbh/german-elmo-model/releases/download/"
        "files_1/",
        "german-elmo-model, issue 2",
        "https://github.com/t-systems-on-site-services-gmbh/german-elmo-model",
    ),
    _pair_elsewhere(
        "basque",
        "eu",
        "trained on Wikipedia, OPUS and the Leipzig corpora, by Stefan Schweter",
        "https://schweter.eu/cloud/eu-elmo/",
        "stefan-it/plur, README.md",
        "https://github.com/stefan-it/plur",
    ),
)

# -- AllenNLP: TensorFlow checkpoints, the only files with the softmax ----------------------------
#
# Addresses: README.md (FAQ) and issues 105 and 198 of github.com/allenai/bilm-tf. The graph
# (.meta) is not downloaded: nothing here reads it.


def _checkpoint(of: str, folder: str, step: int, index: tuple[str, ...]) -> PublishedModel:
    data = f"model.ckpt-{step}"
    return PublishedModel(
        f"{of}-checkpoint",
        f"the TensorFlow checkpoint of {of}, with softmax and vocabulary, to continue training",
        "en",
        (
            _bucket_file("elmo/vocab-2016-09-10.txt", "vocab.txt"),
            _bucket_file(f"{folder}/options.json"),
            *(_bucket_file(f"{folder}/{name}") for name in index),
            _bucket_file(f"{folder}/{data}.index"),
            _bucket_file(f"{folder}/{data}.data-00000-of-00001"),
        ),
        "allenai/bilm-tf, README.md and issues 105 and 198",
        "https://github.com/allenai/bilm-tf",
    )


_CHECKPOINTS = (
    _checkpoint(
        "small", "elmo/2x1024_128_2048cnn_1xhighway/tf_checkpoint", 1501260, ("checkpoint",)
    ),
    _checkpoint("medium", "elmo/2x2048_256_2048cnn_1xhighway/tf_checkpoint", 1501260, ()),
    _checkpoint(
        "original", "elmo/2x4096_512_2048cnn_2xhighway_tf_checkpoint", 935588, ("checkpoint",)
    ),
)

# -- Schuster et al. 2019: seven languages, all trained on Wikipedia -------------------------
#
# Addresses: the training configuration of AllenNLP's multilingual parser
# (multilang_dependency_parser.jsonnet). All share one options file.

_WIKIPEDIA = tuple(
    PublishedModel(
        f"wikipedia-{code}",
        f"{language}, trained on Wikipedia, by Tal Schuster and others (cross-lingual ELMo)",
        code,
        (
            _bucket_file("multilingual_elmo/options262.json", "options.json"),
            _bucket_file(f"multilingual_elmo/{code}_weights.hdf5", "weights.hdf5"),
        ),
        "AllenNLP, multilang_dependency_parser.jsonnet",
        "https://github.com/TalSchuster/CrossLingualContextualEmb",
        (f"wikipedia-{language.lower()}",),
    )
    for code, language in (
        ("en", "English"),
        ("es", "Spanish"),
        ("fr", "French"),
        ("it", "Italian"),
        ("pt", "Portuguese"),
        ("sv", "Swedish"),
        ("de", "German"),
    )
)

# -- The NLPL repository -----------------------------------------------------------------------
#
# An entry never changes once it is published (wiki.nlpl.eu, Vectors/home). Published addresses use
# http; the same server also answers https, which is tried first.

_NLPL = "vectors.nlpl.eu/repository/"
_NLPL_PAGE = "http://vectors.nlpl.eu/repository/"


def _nlpl(
    number: int,
    version: str,
    name: str,
    language: str,
    description: str,
    source: str,
    aliases: tuple[str, ...] = (),
) -> PublishedModel:
    addresses = tuple(f"{scheme}://{_NLPL}{version}/{number}.zip" for scheme in ("https", "http"))
    return PublishedModel(
        name,
        description,
        language,
        (RemoteFile(f"{number}.zip", addresses),),
        source,
        _NLPL_PAGE,
        aliases,
    )


def _nlpl_entry(number: int) -> PublishedModel:
    """Return any other entry of the repository, by its number; many are not ELMo models.

    `20/N.zip` is what entries call their life-time identifier (README of the archives, as quoted
    by huggingface.co/Word2vec/nlpl_58).
    """
    return _nlpl(
        number, "20", f"nlpl-{number}", "", f"entry {number}", "NLPL, life-time identifier"
    )


_RUSSIAN_SOURCE = "a list of Russian models that quotes rusvectores.org/en/models"
_NORWEGIAN_SOURCE = "wiki.nlpl.eu, Vectors/norlm/norelmo"
_NLPL_BILM = (
    _nlpl(
        195,
        "20",
        "russian",
        "ru",
        "words of the Russian National Corpus and Wikipedia 2018, by RusVectōrēs",
        _RUSSIAN_SOURCE,
        ("ruwikiruscorpora_tokens_elmo_1024_2019", "nlpl-195"),
    ),
    _nlpl(
        196,
        "20",
        "russian-lemmas",
        "ru",
        "lemmas of the Russian National Corpus and Wikipedia 2018, by RusVectōrēs",
        _RUSSIAN_SOURCE,
        ("ruwikiruscorpora_lemmas_elmo_1024_2019", "nlpl-196"),
    ),
    _nlpl(
        199,
        "20",
        "russian-taiga-lemmas",
        "ru",
        "lemmas of the Taiga corpus, by RusVectōrēs",
        _RUSSIAN_SOURCE,
        ("tayga_lemmas_elmo_2048_2019", "nlpl-199"),
    ),
    _nlpl(
        210,
        "20",
        "norwegian-wikipedia-lemmas",
        "no",
        "lemmas of Wikipedia 2020, by NorLM",
        _NORWEGIAN_SOURCE,
        ("nlpl-210",),
    ),
    _nlpl(
        211,
        "20",
        "norwegian-wikipedia",
        "no",
        "words of Wikipedia 2020, by NorLM",
        _NORWEGIAN_SOURCE,
        ("nlpl-211",),
    ),
    _nlpl(
        217,
        "20",
        "norelmo30",
        "no",
        "Wikipedia and Norsk Aviskorpus, 30,000 words in the softmax, by NorLM",
        _NORWEGIAN_SOURCE,
        ("nlpl-217",),
    ),
    _nlpl(
        218,
        "20",
        "norelmo100",
        "no",
        "Wikipedia and Norsk Aviskorpus, 100,000 words in the softmax, by NorLM",
        _NORWEGIAN_SOURCE,
        ("norwegian", "nlpl-218"),
    ),
)

# ELMoForManyLangs: README.md of github.com/HIT-SCIR/ELMoForManyLangs (and of its package on PyPI).

_MANY_LANGS = tuple(
    _nlpl(
        136 + i,
        "11",
        f"manylangs-{code}",
        code,
        f"{language}, 20M words of Wikipedia and Common Crawl, by HIT-SCIR (ELMoForManyLangs)",
        "HIT-SCIR/ELMoForManyLangs, README.md",
        (f"manylangs-{language.lower().replace(' ', '-')}", f"nlpl-{136 + i}"),
    )
    for i, (code, language) in enumerate(
        (
            ("ar", "Arabic"),
            ("bg", "Bulgarian"),
            ("ca", "Catalan"),
            ("cs", "Czech"),
            ("cu", "Old Church Slavonic"),
            ("da", "Danish"),
            ("de", "German"),
            ("el", "Greek"),
            ("en", "English"),
            ("es", "Spanish"),
            ("et", "Estonian"),
            ("eu", "Basque"),
            ("fa", "Persian"),
            ("fi", "Finnish"),
            ("fr", "French"),
            ("ga", "Irish"),
            ("gl", "Galician"),
            ("grc", "Ancient Greek"),
            ("he", "Hebrew"),
            ("hi", "Hindi"),
            ("hr", "Croatian"),
            ("hu", "Hungarian"),
            ("id", "Indonesian"),
            ("it", "Italian"),
            ("ja", "Japanese"),
            ("ko", "Korean"),
            ("la", "Latin"),
            ("lv", "Latvian"),
            ("nl", "Dutch"),
            ("nb", "Norwegian Bokmål"),
            ("nn", "Norwegian Nynorsk"),
            ("pl", "Polish"),
            ("pt", "Portuguese"),
            ("ro", "Romanian"),
            ("ru", "Russian"),
            ("sk", "Slovak"),
            ("sl", "Slovene"),
            ("sv", "Swedish"),
            ("tr", "Turkish"),
            ("ug", "Uyghur"),
            ("uk", "Ukrainian"),
            ("ur", "Urdu"),
            ("vi", "Vietnamese"),
            ("zh", "Chinese"),
        )
    )
)

# -- SeqVec: proteins --------------------------------------------------------------------------
#
# The first address is in the code of github.com/mheinzinger/SeqVec (seqvec/seqvec.py), with http;
# the others in README.md of the same repository (an archive with these two files, which is not
# listed here) and in defaults.yml of github.com/sacdallago/bio_embeddings. The MD5 checksums are
# those of its entry in the Kipoi model zoo (kipoi/models, SeqVec/embedding/model.yaml), which has
# the first address with https. None of the servers could be asked when this was written.

_SEQVEC = (
    "https://rostlab.org/~deepppi/embedding_repo/embedding_models/seqvec/",
    "http://rostlab.org/~deepppi/embedding_repo/embedding_models/seqvec/",
    "http://data.bioembeddings.com/public/embeddings/embedding_models/seqvec/",
    "http://maintenance.dallago.us/public/embeddings/embedding_models/seqvec/",
)
_PROTEINS = (
    PublishedModel(
        "seqvec",
        "proteins: 2x4096_512_2048cnn_2xhighway, trained on UniRef50, by Rostlab (SeqVec)",
        "zxx",
        (
            RemoteFile(
                "options.json",
                tuple(base + "options.json" for base in _SEQVEC),
                md5="cede355187778de3ac302a83c761f5f9",
            ),
            RemoteFile(
                "weights.hdf5",
                tuple(base + "weights.hdf5" for base in _SEQVEC),
                md5="0249d59249a50b43b79f641ff2ba7e88",
            ),
        ),
        "mheinzinger/SeqVec, seqvec/seqvec.py; kipoi/models; sacdallago/bio_embeddings",
        "https://github.com/Rostlab/SeqVec",
        proteins=True,
    ),
)

PUBLISHED = (*_ALLENNLP, *_CHECKPOINTS, *_WIKIPEDIA, *_NLPL_BILM, *_MANY_LANGS, *_PROTEINS)
"""All published models that elmokit knows by name."""

_BY_NAME = {name.lower(): model for model in PUBLISHED for name in (model.name, *model.aliases)}

_LANGUAGE_CODES = {
    alias.removeprefix("manylangs-"): model.language
    for model in _MANY_LANGS
    for alias in model.aliases
    if alias.startswith("manylangs-")
} | {"mandarin": "zh", "farsi": "fa", "brazilian": "pt"}
"""ISO 639 codes of languages by their English names."""
