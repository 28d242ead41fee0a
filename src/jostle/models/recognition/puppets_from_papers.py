"""Small versions of SlowFast and TAM that can be trained on puppets.

Nothing but the sizes differs, so that what is found out about them on puppets is about the same computation. X3D has a
small relative of its own, `puppet_x3d`, beside the other recognisers of puppets.
"""

from __future__ import annotations

from dataclasses import replace

from jostle.models.networks.slowfast import SlowFast, SlowFastConfig
from jostle.models.networks.tam_resnet import TamConfig, TamResNet
from jostle.models.recognition.puppets import CLASSES, SPEC
from jostle.models.recognition.recogniser import (
    Changes,
    Recogniser,
    Weights,
    changed,
    recogniser,
    with_weights,
)

SOURCE = "a file that jostle train wrote"
SLOWFAST = SlowFastConfig(windows=((4, 4, 4), (16, 4, 4)), depths=(1, 1, 1, 1), width=16)
TAM = TamConfig(18, width=16)


@recogniser("puppet_slowfast", spec=SPEC, source=SOURCE)
def puppet_slowfast(weights: Weights, changes: Changes) -> Recogniser:
    """SlowFast with a quarter of the channels and one block a stage, for clips of puppets; 4 slow frames of 16."""

    def build(classes: int) -> SlowFast:
        return SlowFast(replace(SLOWFAST, classes=classes))

    spec = changed("puppet_slowfast", SPEC, changes)
    return with_weights("puppet_slowfast", build, spec, weights, head="blocks.6.proj.bias", classes=CLASSES)


@recogniser("puppet_tam", spec=SPEC, source=SOURCE)
def puppet_tam(weights: Weights, changes: Changes) -> Recogniser:
    """TAM on a ResNet of 18 layers with a quarter of the channels, for clips of puppets."""
    return _tam("puppet_tam", TAM, weights, changes)


@recogniser("puppet_tam_wide", spec=SPEC, source=SOURCE)
def puppet_tam_wide(weights: Weights, changes: Changes) -> Recogniser:
    """The same with half of the channels, four times as many weights: what does capacity buy?"""
    return _tam("puppet_tam_wide", replace(TAM, width=2 * TAM.width), weights, changes)


def _tam(name: str, config: TamConfig, weights: Weights, changes: Changes) -> Recogniser:
    def build(classes: int) -> TamResNet:
        return TamResNet(replace(config, classes=classes))

    return with_weights(name, build, changed(name, SPEC, changes), weights, head="fc.bias", classes=CLASSES)
