"""How far an accuracy loss can be trusted, where two models answered the same images."""

import math

from deep_learning_cases.errors import InputError

__all__ = ["CONFIDENCE", "METHOD", "paired_interval"]

CONFIDENCE = 0.95


METHOD = "Tango score interval for paired proportions (Statistics in Medicine 17, 1998)"
_Z = 1.959963984540054
"""The 97.5 % point of the normal distribution, for 95 % between two of them."""


def paired_interval(lost: int, gained: int, images: int) -> tuple[float, float]:
    """The 95 % interval of an accuracy loss, as fractions (low, high), from the images that only one model gets right.

    ``lost`` are right before and wrong after, ``gained`` the other way round, of ``images`` in all.  The interval holds
    every loss that a score test at 5 % does not reject, so it keeps a width even where no image changed: then it ends
    at z^2 / (n + z^2).  InputError unless 0 <= lost, gained and lost + gained <= images >= 1.
    Source: T. Tango, "Equivalence test and confidence interval for the difference in proportions for the paired-sample
    design", Statistics in Medicine 17 (1998) 891-908.
    """
    if images < 1 or min(lost, gained) < 0 or lost + gained > images:
        raise InputError(
            f"{lost} lost and {gained} gained of {images} images: expected counts of at least 0 that add up to no more "
            "than the images; count again"
        )
    estimate = (lost - gained) / images
    return _end(lost, gained, images, estimate, -1.0), _end(lost, gained, images, estimate, 1.0)


def _end(lost: int, gained: int, n: int, inside: float, outside: float) -> float:
    """Bisection between the estimate, which is never rejected, and a loss of all images or none of them."""
    if inside == outside:
        return outside
    for _ in range(60):
        middle = (inside + outside) / 2
        if abs(_score(lost, gained, n, middle)) <= _Z:
            inside = middle
        else:
            outside = middle
    return inside


def _score(lost: int, gained: int, n: int, loss: float) -> float:
    """How many standard errors, estimated under a true ``loss``, the counts lie from it (Tango 1998)."""
    b = (2 * n - lost + gained) * loss - lost - gained
    c = -gained * loss * (1 - loss)
    gain_probability = (math.sqrt(max(b * b - 8 * n * c, 0.0)) - b) / (4 * n)
    variance = n * (2 * gain_probability + loss * (1 - loss))
    distance = lost - gained - n * loss
    if variance <= 0:
        return math.copysign(math.inf, distance) if distance else 0.0
    return distance / math.sqrt(variance)
