"""Places in memory that are used again."""

import torch

from fedpapers.memory import _APART, zeros


def test_zeros_take_the_place_of_those_that_nobody_holds() -> None:
    like, size = torch.empty(0), _APART // 4 + 1
    first = zeros(size, like=like)
    place = first.fill_(1).data_ptr()
    part = first[1:3]
    del first
    second = zeros(1, size, like=like)
    assert second.data_ptr() != place  # a view holds the whole
    assert part.tolist() == [1, 1]
    del part
    third = zeros(size, like=like)
    assert third.data_ptr() == place
    assert second.shape == (1, size)
    assert not third.any()
    assert not second.any()


def test_small_zeros_and_other_types() -> None:
    assert zeros(2, 3, like=torch.empty(0, dtype=torch.float64)).dtype == torch.float64
    large = zeros(3, _APART // 8, like=torch.empty(0, dtype=torch.float64))
    assert large.shape == (3, _APART // 8)
    assert large.dtype == torch.float64
    assert not large.any()
