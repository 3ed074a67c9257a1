"""Takings of market stalls, in cents."""


def takings(crates, cents_per_crate):
    return crates * cents_per_crate


def share(part, whole):
    """How much of the whole a part is, in percent, rounded down."""
    return part * 100 // whole if whole else 0
