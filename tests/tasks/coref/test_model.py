from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from elmokit.elmo import Elmo
from elmokit.tasks import coref
from elmokit.tasks.coref.data import Example, Mention
from elmokit.tasks.coref.model import Model, Sizes, _Document, _join_clusters, _without_crossing
from elmokit.tasks.layer_store import LayerStore
from elmokit.tasks.static import StaticVectors
from elmokit.tasks.word_embedding import WordEmbedding

SENTENCES = (
    ("Emma", "met", "Harriet", "Smith", "."),
    ("She", "liked", "her", "."),
    ("Her", "father", "did", "not", "know", "Harriet", "."),
    ("He", "slept", "."),
)
EMMA = (Mention(0, 0, 1), Mention(1, 0, 1), Mention(2, 0, 1))
HARRIET = (Mention(0, 2, 4), Mention(1, 2, 3), Mention(2, 5, 6))
FATHER = (Mention(2, 0, 2), Mention(3, 0, 1))
STORY = Example("(story); part 000", SENTENCES, ("", "A", "B", "A"), (EMMA, HARRIET, FATHER))
SMALL = Sizes(
    hidden=5, ffnn=7, features=3, characters=2, width=3, keep=0.6, antecedents=4, dropout=0.0
)


def vectors(size: int = 6) -> StaticVectors:
    known = sorted({word.lower() for sentence in SENTENCES for word in sentence})
    numbers = np.random.default_rng(0).normal(size=(len(known), size)).astype(np.float32)
    return StaticVectors.from_words(known, numbers, "random")


def build(sizes: Sizes = SMALL, words: WordEmbedding | None = None) -> Model:
    torch.manual_seed(3)
    return Model(words or WordEmbedding(vectors()), sizes, {}).eval()


def inputs(model: Model) -> tuple[_Document, Tensor, Tensor]:
    """A document, and random x and x* for its words."""
    document = _Document(STORY, model.sizes.width)
    count = len(document.sentence_N)
    generator = torch.Generator().manual_seed(0)
    x_NE = torch.randn(count, model.m_head.in_features, generator=generator)
    return document, x_NE, torch.randn(count, model.m_start.in_features, generator=generator)


def test_words_come_back_in_order(
    monkeypatch: pytest.MonkeyPatch, elmo: Elmo, tmp_path: Path
) -> None:
    monkeypatch.setattr(coref.model, "SENTENCE_BATCH", 2)
    words = WordEmbedding(vectors(), LayerStore(elmo, tmp_path), placement="both").eval()
    model = build(words=words)
    with torch.no_grad():
        x_NE, elmo_ND = model._embed(_Document(STORY, 3))
        alone = [words([sentence]) for sentence in SENTENCES]
        expected = torch.cat([embedded.x_BTE[0] for embedded in alone])
        torch.testing.assert_close(x_NE[:, : words.dim], expected)
        output = torch.cat(
            [embedded.append_elmo(embedded.x_BTE[:, :, :0])[0] for embedded in alone]
        )
        torch.testing.assert_close(elmo_ND, output)
    assert len(x_NE) == sum(map(len, SENTENCES))


def test_spans_lie_within_a_sentence() -> None:
    document = _Document(STORY, 3)
    found = {
        document.mention(start, width) for start, width in document.exists_NW.nonzero().tolist()
    }
    expected = {
        Mention(s, start, start + width)
        for s, sentence in enumerate(SENTENCES)
        for start, width in product(range(len(sentence)), (1, 2, 3))
        if start + width <= len(sentence)
    }
    assert found == expected


def test_gold_clusters_lie_on_their_spans() -> None:
    document = _Document(STORY, 2)
    cluster_NW = document.clusters(STORY, 2)
    found = {
        document.mention(*place): int(cluster_NW[tuple(place)])
        for place in cluster_NW.nonzero().tolist()
    }
    clusters = STORY.clusters or ()
    assert found == {m: k for k, cluster in enumerate(clusters, 1) for m in cluster}
    # A mention that is wider than any span is not there.
    assert int((_Document(STORY, 1).clusters(STORY, 1) > 0).sum()) == 6


@pytest.mark.parametrize("depth", [1, 2])
def test_mention_scores_are_those_of_the_papers_formula(depth: int) -> None:
    """FFNN([x*_start; x*_last; Σ a_t x_t; φ]), word by word, without any saving."""
    model = build(Sizes(**{**_plain(SMALL), "depth": depth}))
    document, x_NE, star_NC = inputs(model)
    with torch.no_grad():
        s_m_NW, head_NWW = model._mention_scores(x_NE, star_NC, document)
        weight = torch.cat(
            [part.weight for part in (model.m_start, model.m_last, model.m_head, model.m_width)], 1
        )
        for start, extra in document.exists_NW.nonzero().tolist():
            inside = slice(start, start + extra + 1)
            a = model.head(star_NC[inside]).squeeze(1).softmax(dim=0)
            g = torch.cat(
                [
                    star_NC[start],
                    star_NC[start + extra],
                    a @ x_NE[inside],
                    model.width.weight[extra],
                ]
            )
            hidden = torch.relu(weight @ g + model.m_width.bias)
            expected = model.m_top.layers(hidden)
            assert s_m_NW[start, extra].item() == pytest.approx(expected.item(), abs=1e-5)
            assert head_NWW[start, extra, : extra + 1].tolist() == pytest.approx(a.tolist())
            assert head_NWW[start, extra, extra + 1 :].abs().sum() == 0


@pytest.mark.parametrize("project", [0, 4])
def test_antecedent_scores_are_those_of_the_papers_formula(
    project: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """s_m(i) + s_m(j) + FFNN([g_i; g_j; g_i ∘ g_j; φ]), pair by pair; also in small blocks."""
    model = build(Sizes(**{**_plain(SMALL), "product": project}))
    document, x_NE, star_NC = inputs(model)
    monkeypatch.setattr(coref.model, "PAIRS_AT_ONCE", 9)
    with torch.no_grad():
        spans = model._keep_best(*model._mention_scores(x_NE, star_NC, document), document)
        g_MG = model._representations(x_NE, star_NC, spans)
        s_MK, antecedent_MK = model._antecedent_scores(g_MG, spans, document)
        parts = (model.a_i, model.a_j, model.a_product, model.a_distance, model.a_speaker)
        weight = torch.cat([part.weight for part in parts], dim=1)
        speakers = document.speaker_N[spans.start_M].tolist()
        buckets = (0, 1, 2, 3, 4)
        for i, k in product(range(len(g_MG)), range(SMALL.antecedents)):
            j = i - 1 - k
            if j < 0:
                assert s_MK[i, k] < -1e8
                continue
            assert antecedent_MK[i, k] == j
            known = speakers[i] > 0 and speakers[j] > 0
            speaker = (1 + (speakers[i] == speakers[j])) if known else 0
            both = (
                g_MG[i] * g_MG[j]
                if model.project is None
                else model.project(g_MG[i]) * model.project(g_MG[j])
            )
            pair = [g_MG[i], g_MG[j], both]
            pair += [model.distance.weight[buckets[k]], model.speaker.weight[speaker]]
            hidden = torch.relu(weight @ torch.cat(pair) + model.a_distance.bias)
            expected = spans.s_m_M[i] + spans.s_m_M[j] + model.a_top.layers(hidden)
            assert s_MK[i, k].item() == pytest.approx(expected.item(), abs=1e-5)
    assert {0, 1, 2} == {1 + (a == b) if a and b else 0 for a, b in pairwise(speakers)}


def test_a_span_is_what_its_parts_say() -> None:
    model = build()
    document, x_NE, star_NC = inputs(model)
    with torch.no_grad():
        spans = model._keep_best(*model._mention_scores(x_NE, star_NC, document), document)
        g_MG = model._representations(x_NE, star_NC, spans)
    for i in range(len(g_MG)):
        start, last = int(spans.start_M[i]), int(spans.last_M[i])
        a = spans.head_MW[i, : last - start + 1]
        expected = torch.cat(
            [
                star_NC[start],
                star_NC[last],
                a @ x_NE[start : last + 1],
                model.width.weight[last - start].detach(),
            ]
        )
        torch.testing.assert_close(g_MG[i], expected, atol=1e-5, rtol=1e-5)


def test_kept_spans_are_the_best_that_do_not_cross() -> None:
    width, words = 5, 40
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(words * width, generator=generator).tolist()
        best = [span for span in order if span // width + span % width < words]
        kept: list[tuple[int, int]] = []
        for span in best:
            a, b = span // width, span // width + span % width
            if not any(c < a <= d < b or a < c <= b < d for c, d in kept):
                kept.append((a, b))
        found = _without_crossing(best, width, words, 30)
        assert [(s // width, s // width + s % width) for s in found] == kept[:30]


def test_a_short_text_keeps_enough_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(Sizes(**{**_plain(SMALL), "keep": 0.2}))
    for least, expected in ((1, int(0.2 * 19)), (10, 10), (1000, None)):
        monkeypatch.setattr(coref.model, "MIN_KEPT", least)
        document, x_NE, star_NC = inputs(model)
        with torch.no_grad():
            spans = model._keep_best(*model._mention_scores(x_NE, star_NC, document), document)
        places = list(zip(spans.start_M.tolist(), spans.last_M.tolist(), strict=True))
        assert places == sorted(places)
        assert all(bool(document.exists_NW[a, b - a]) for a, b in places)
        if expected is None:
            assert len(places) >= 19  # every single word at least crosses nothing
        else:
            assert len(places) == expected


def test_the_loss_is_the_papers_by_hand() -> None:
    """A span without a right antecedent should choose none; others, any of the right ones."""
    sizes = Sizes(**{**_plain(SMALL), "keep": 2.0, "antecedents": 30})
    model = build(sizes)
    with torch.no_grad():
        loss = model.loss([STORY])
        document = _Document(STORY, SMALL.width)
        _, spans, s_MK, antecedent_MK = model._scores(document)
    clusters = {m: k for k, cluster in enumerate(STORY.clusters or ()) for m in cluster}
    places = zip(spans.start_M.tolist(), spans.width_M.tolist(), strict=True)
    mentions = [document.mention(*place) for place in places]
    expected, with_antecedent = 0.0, 0
    for i, mention in enumerate(mentions):
        options = [0.0]
        right = []
        for k in range(min(i, sizes.antecedents)):
            options.append(float(s_MK[i, k]))
            other = mentions[int(antecedent_MK[i, k])]
            if mention in clusters and clusters.get(other) == clusters[mention]:
                right.append(options[-1])
        with_antecedent += bool(right)
        total = np.exp(options).sum()
        expected -= np.log(np.exp(right or [0.0]).sum() / total)
    assert with_antecedent
    assert loss.item() == pytest.approx(expected / len(mentions), rel=1e-4)


def test_the_second_loss_is_on_all_spans() -> None:
    plain, both = build(), build(Sizes(**{**_plain(SMALL), "mention_loss": 2.0}))
    with torch.no_grad():
        document = _Document(STORY, SMALL.width)
        s_m_NW, spans, _, _ = both._scores(document)
        gold = (document.clusters(STORY, SMALL.width) > 0).float()
        exists = document.exists_NW
        extra = torch.nn.functional.binary_cross_entropy_with_logits(s_m_NW, gold, reduction="none")
        expected = plain.loss([STORY]) + 2 * extra[exists].sum() / len(spans.start_M)
        assert both.loss([STORY]).item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_batch_is_the_mean_of_its_documents() -> None:
    model = build()
    other = Example("(o); part 000", SENTENCES[:2], ("", ""), (EMMA[:2],))
    with torch.no_grad():
        one, two = model.loss([STORY]), model.loss([other])
        assert model.loss([STORY, other]).item() == pytest.approx(((one + two) / 2).item())
        assert model.predict([STORY, other]) == model.predict([STORY]) + model.predict([other])


def test_every_parameter_learns() -> None:
    model = build(Sizes(**{**_plain(SMALL), "product": 4})).train()
    model.loss([STORY]).backward()
    still = {
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is None or not parameter.grad.any()
    }
    assert not still


def test_it_learns_a_story_by_heart() -> None:
    sizes = Sizes(
        hidden=12, ffnn=20, depth=1, features=4, characters=4, width=3, antecedents=20, keep=0.5
    )
    model = build(Sizes(**{**_plain(sizes), "dropout": 0.0, "mention_loss": 0.5})).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        loss = model.loss([STORY])
        if loss < 0.05:
            break
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        (found,) = model.predict([STORY])
    assert found == STORY.clusters
    assert coref.metric.score([STORY], [found])["average"] == pytest.approx(100)


def test_a_long_document_is_learned_in_windows() -> None:
    long = Example(
        "(long); part 000",
        tuple((f"w{n}", "x") for n in range(12)),
        tuple(f"S{n}" for n in range(12)),
        (tuple(Mention(n, 0, 1) for n in range(12)), (Mention(3, 1, 2),)),
    )
    model = build(Sizes(**{**_plain(SMALL), "sentences": 5}))
    torch.manual_seed(0)
    firsts = set()
    for _ in range(60):
        window = model._window(long)
        first = int(window.sentences[0][0][1:])
        firsts.add(first)
        assert window.sentences == long.sentences[first : first + 5]
        assert window.speakers == long.speakers[first : first + 5]
        expected = [tuple(Mention(n, 0, 1) for n in range(5))]
        if first <= 3 < first + 5:
            expected.append((Mention(3 - first, 1, 2),))
        assert window.clusters == tuple(expected)
    assert firsts == set(range(8))
    torch.manual_seed(5)
    again = [model._window(long) for _ in range(3)]
    torch.manual_seed(5)
    assert again == [model._window(long) for _ in range(3)]
    assert model._window(STORY) is STORY


def test_a_document_of_one_word() -> None:
    model = build()
    example = Example("(w); part 000", (("He",),), ("",), ())
    with torch.no_grad():
        assert model.predict([example]) == [()]
        assert torch.isfinite(model.loss([example]))


def test_chosen_antecedents_join() -> None:
    mentions = [Mention(0, n, n + 1) for n in range(6)]
    found = _join_clusters(mentions, [-1, -1, 0, 2, 1, -1])
    assert found == ((mentions[0], mentions[2], mentions[3]), (mentions[1], mentions[4]))


def test_speakers_count_only_where_they_are_known() -> None:
    model = build()
    unknown = Example(STORY.document, SENTENCES, ("",) * 4, STORY.clusters)
    other = Example(STORY.document, SENTENCES, ("X", "Y", "Y", "X"), STORY.clusters)
    renamed = Example(STORY.document, SENTENCES, ("P", "Q", "Q", "P"), STORY.clusters)
    with torch.no_grad():
        assert model.loss([other]) == model.loss([renamed])
        assert model.loss([other]) != model.loss([unknown])


@pytest.mark.parametrize("place", ["input", "output", "both"])
def test_elmo_at_any_place(place: str, elmo: Elmo, tmp_path: Path) -> None:
    layers = LayerStore(elmo, tmp_path)
    words = WordEmbedding(vectors(), layers, placement=place)  # type: ignore[arg-type]
    model = build(words=words).train()
    model.loss([STORY]).backward()
    for mix in words.mixes.values():
        assert all(p.grad is not None and p.grad.any() for p in mix.parameters())
    assert len(words.mixes) == (2 if place == "both" else 1)
    model.eval()
    with torch.no_grad():
        assert len(model.predict([STORY])) == 1


def test_presets_are_models() -> None:
    for preset in coref.model.PRESETS.values():
        assert isinstance(preset.sizes, Sizes)
        assert preset.training.batch == 1


def _plain(sizes: Sizes) -> dict[str, object]:
    return {name: getattr(sizes, name) for name in Sizes.__dataclass_fields__}
