"""False alarms to expect of the stream inspector, as measured on clean footage."""

from __future__ import annotations

from dataclasses import dataclass

# Events an hour on clean footage that took no part in training, with the ends of the 95 % interval, by look-ahead: four
# events in the 11.2 minutes of docs/results/watching-a-stream.md. Other look-aheads have not been measured.
EVENTS_PER_HOUR: dict[int, tuple[float, float, float]] = {
    0: (21.5, 5.8, 55.0),
    5: (21.5, 5.8, 55.0),
    15: (21.5, 5.8, 55.0),
}


@dataclass(frozen=True)
class FalseAlarms:
    """Events that clean footage of some length would give by error.

    Attributes:
        expected: their mean number; `low` and `high` by the interval of the measured rate.
    """

    expected: float
    low: float
    high: float


def expected_false_alarms(seconds: float, lookahead: int) -> FalseAlarms | None:
    """Return the false events to expect in footage of this length, None where the rate has not been measured."""
    rate = EVENTS_PER_HOUR.get(lookahead)
    return None if rate is None else FalseAlarms(*(seconds / 3600 * value for value in rate))


def describe_false_alarms(seconds: float, events: int, lookahead: int) -> str:
    """Return in words how many of the events that were found may be false."""
    alarms = expected_false_alarms(seconds, lookahead)
    if alarms is None:
        return (
            f"How many of the {events} events are false is not known: the false alarm rate at a look-ahead of "
            f"{lookahead} has not been measured. Look at the pictures before you drop a video."
        )
    return (
        f"In clean footage as long as this about {alarms.expected:.3g} events are false alarms (95 % interval "
        f"{alarms.low:.3g} to {alarms.high:.3g}, measured on footage that is not yours); {events} were found. Look at "
        "the pictures before you drop a video."
    )
