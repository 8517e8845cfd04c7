"""Recurrent layers: padding does not matter, dropout stays put."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence  # noqa: E402

from elmokit.tasks.recurrent import BiLSTM, LockedDropout, LongBiLSTM  # noqa: E402


@pytest.mark.parametrize("layers", [1, 2])
def test_a_sentence_is_alone(layers: int) -> None:
    torch.manual_seed(0)
    net = BiLSTM(5, 4, layers).eval()
    x = torch.randn(3, 6, 5)
    lengths = torch.tensor([2, 6, 4])
    found = net(x, lengths)
    assert found.shape == (3, 6, 8)
    for b, length in enumerate(lengths.tolist()):
        alone = net(x[b : b + 1, :length], torch.tensor([length]))
        assert torch.allclose(found[b, :length], alone[0], atol=1e-6)
        assert (found[b, length:] == 0).all()


def test_one_mask_for_all_words() -> None:
    torch.manual_seed(0)
    dropped = LockedDropout(0.5)(torch.ones(2, 4, 50))
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert (dropped == dropped[:, :1]).all() and not torch.equal(dropped[0], dropped[1])
    assert (LockedDropout(0.5).eval()(torch.ones(1, 2, 3)) == 1).all()


def test_for_long_texts_it_equals_a_packed_bidirectional_lstm() -> None:
    torch.manual_seed(0)
    layer = LongBiLSTM(3, 4)
    packed = torch.nn.LSTM(3, 4, batch_first=True, bidirectional=True)
    for name, weights in packed.named_parameters():
        own = layer.back if name.endswith("_reverse") else layer.forth
        weights.data.copy_(getattr(own, name.removesuffix("_reverse")))
    x, lengths = torch.randn(4, 7, 3), torch.tensor([3, 7, 1, 6])
    wanted, _ = packed(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    dense, _ = pad_packed_sequence(wanted, batch_first=True)
    torch.testing.assert_close(layer(x, lengths), dense)
