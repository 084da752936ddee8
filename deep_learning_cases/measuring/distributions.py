"""The few distributions the statistics need, without SciPy: Student's t, the binomial, an exact proportion interval."""

import math

from deep_learning_cases.errors import InputError
from deep_learning_cases.ground.arguments import fraction, number, whole

__all__ = ["proportion_interval", "samples_needed", "t_quantile", "tail_rank"]

_NOTHING = 1e-30
"""Of the most likely count's probability: what lies beyond adds nothing to a tail that a float can ask for."""


def t_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's t for 0.5 <= ``probability`` < 1 and a whole number of degrees of freedom >= 1.

    With theta = atan(t / sqrt(degrees)) the central probability is a finite sum of powers of cos(theta) (Abramowitz and
    Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4); it grows with theta, so bisection inverts it.

    Raises InputError for other arguments.
    """
    degrees = whole(degrees, "degrees of freedom")
    if not 0.5 <= number(probability) < 1:
        raise InputError(f"probability is {probability!r}: expected 0.5 <= probability < 1; check the confidence")
    central = 2 * probability - 1
    low, high = 0.0, math.pi / 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_central(middle, degrees) < central else (low, middle)
    return math.sqrt(degrees) * math.tan((low + high) / 2)


def proportion_interval(hits: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's exact interval of a proportion, from ``hits`` of ``n`` independent trials.

    Source: Clopper and Pearson, Biometrika 26 (1934).  Raises InputError unless 0 <= hits <= n and n >= 1.
    """
    n = whole(n, "trials")
    hits = whole(hits, "hits", 0, n)
    tail = (1 - fraction(confidence, "confidence")) / 2
    low = 0.0 if hits == 0 else 1 - _upper_proportion(n - hits, n, tail)
    high = 1.0 if hits == n else _upper_proportion(hits, n, tail)
    return low, high


def tail_rank(n: int, p: float, tail: float) -> tuple[int, float]:
    """Largest rank l with P(B <= l - 1) <= tail for B ~ Binomial(n, p), 0 where there is none; and that probability.

    Each probability follows from its neighbour's by a ratio, so they are walked from the mode outwards as far as they
    count, about sqrt(n) steps, and divided by their sum: no factorial is needed.
    """
    mode = min(int((n + 1) * p), n)
    odds = p / (1 - p)
    below, weight = [], 1.0
    for k in range(mode, 0, -1):
        weight *= k / ((n - k + 1) * odds)
        if weight < _NOTHING:
            break
        below.append(weight)
    above, weight = [], 1.0
    for k in range(mode, n):
        weight *= (n - k) * odds / (k + 1)
        if weight < _NOTHING:
            break
        above.append(weight)
    weights = [*reversed(below), 1.0, *above]
    whole, total, reached = math.fsum(weights), 0.0, 0.0
    for k, weight in enumerate(weights, mode - len(below)):
        total += weight / whole
        if total > tail:
            return k, reached
        reached = total
    return n, reached


def samples_needed(p: float, tail: float) -> int:
    """Smallest n with p ** n <= tail: the largest sample is then above the p-quantile often enough."""
    return math.ceil(math.log(tail) / math.log(p))


def _log_binomial(k: int, n: int, p: float) -> float:
    choices = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return choices + k * math.log(p) + (n - k) * math.log1p(-p)


def _upper_proportion(hits: int, n: int, tail: float) -> float:
    """The proportion at which ``hits`` or fewer of n have probability ``tail``."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        below = math.fsum(math.exp(_log_binomial(k, n, middle)) for k in range(hits + 1))
        low, high = (middle, high) if below > tail else (low, middle)
    return (low + high) / 2


def _t_central(theta: float, degrees: int) -> float:
    """P(|T| <= sqrt(degrees) tan(theta)), by the finite sums for odd and for even degrees of freedom."""
    sine, cosine = math.sin(theta), math.cos(theta)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + odd, degrees - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return (theta + sine * total) * 2 / math.pi if odd else sine * total
