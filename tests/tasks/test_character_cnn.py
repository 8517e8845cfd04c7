"""A word's vector from its characters: its own, whatever words are beside it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.tasks.character_cnn import CharacterCNN  # noqa: E402


@pytest.mark.parametrize("windows", [(3,), (3, 4, 5), (2,)], ids=str)
def test_a_word_is_alone(windows: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    characters = CharacterCNN(40, windows=windows, size=6, longest=20)
    many = characters(["Emma", "a", "Emma", "é" * 30, "emma"])
    assert many.shape == (5, 40 * len(windows)) and characters.dim == many.shape[1]
    assert torch.equal(many[0], many[2]) and not torch.equal(many[0], many[4])
    torch.testing.assert_close(many[1:2], characters(["a"]))
    assert torch.isfinite(many).all() and (many >= 0).all()


def test_only_so_much_of_a_word_is_read() -> None:
    characters = CharacterCNN(40, size=6, longest=7)
    one, two = characters(["abcdefgh", "abcdeXYZ"])
    assert torch.equal(one, two)
