from __future__ import annotations

import numpy as np

from elmokit.probe.plane import project_to_plane


def test_what_lies_on_a_plane_keeps_its_distances() -> None:
    random = np.random.default_rng(0)
    flat = random.normal(size=(20, 2)) * [3, 1]
    turned = flat @ np.linalg.qr(random.normal(size=(7, 7)))[0][:2] + 5
    places = np.array(project_to_plane(turned))
    for i in range(20):
        np.testing.assert_allclose(
            np.linalg.norm(places - places[i], axis=1),
            np.linalg.norm(flat - flat[i], axis=1),
            atol=1e-3,
        )
    assert places[:, 0].std() > places[:, 1].std()


def test_the_sign_is_settled() -> None:
    vectors = np.random.default_rng(0).normal(size=(9, 5))
    places = np.array(project_to_plane(vectors))
    for column in places.T:
        assert column[np.abs(column).argmax()] > 0
    # Seen from the other side, it is the same picture up to the sign of the farthest.
    np.testing.assert_allclose(project_to_plane(-vectors), places, atol=1e-3)


def test_too_few() -> None:
    assert project_to_plane(np.empty((0, 4), np.float32)) == []
    assert project_to_plane(np.ones((1, 4), np.float32)) == [(0.0, 0.0)]
    assert project_to_plane(np.ones((3, 4), np.float32)) == [(0.0, 0.0)] * 3
