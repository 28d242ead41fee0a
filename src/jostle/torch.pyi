"""Exports of `jostle.torch`, and the module that defines each."""

from jostle.training.corrupt_transform import Corrupt as Corrupt
