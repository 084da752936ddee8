"""The hidden questions of ``per_class_accuracy``: predictions and labels made from a course's secret seed.

Shapes are public, what stands in them is not.  They are chosen so that each known mistake (``mistakes``) is
wrong on at least one, and no two mistakes answer all of them alike.  Inputs on which careful people differ (no image at
all, labels that are not whole numbers) are left out.
"""

import random
from dataclasses import dataclass

from grading.judging.function_judge import drawing

__all__ = ["Question", "load"]


@dataclass(frozen=True)
class Question:
    """One hidden input; ``bad`` is empty for a proper one, else the fault that ValueError is the right answer to."""

    id: str
    predictions: tuple[int, ...]
    labels: tuple[int, ...]
    classes: int
    container: str
    bad: str = ""

    @property
    def images(self) -> list[int]:
        """Images of each class."""
        return [self.labels.count(label) for label in range(self.classes)]

    @property
    def correct(self) -> list[int]:
        """Images of each class that were recognised."""
        pairs = list(zip(self.predictions, self.labels, strict=True))
        return [pairs.count((label, label)) for label in range(self.classes)]

    @property
    def predicted(self) -> list[int]:
        """How often each class was answered."""
        return [self.predictions.count(label) for label in range(self.classes)]

    @property
    def truth(self) -> list[float | None]:
        """Share of each class's images that were recognised; None for a class without images."""
        return [right / count if count else None for right, count in zip(self.correct, self.images, strict=True)]


_PROPER = (
    ("few", 3, 11, (), "list"),
    ("two", 2, 23, (), "tuple"),
    ("seven", 7, 61, (), "numpy_int"),
    ("ten", 10, 173, (), "list"),
    ("ten-array", 10, 500, (), "numpy_int"),
    ("twelve", 12, 157, (), "tuple"),
    ("first-absent", 6, 47, (0,), "list"),
    ("last-absent", 9, 83, (8,), "numpy_int"),
    ("last-two-absent", 10, 79, (8, 9), "list"),
    ("middle-absent", 5, 37, (2,), "tuple"),
)
"""Name, classes, images, classes without images, container."""

_BAD = (
    ("lengths", "short"),
    ("lengths", "long"),
    ("label outside", "high"),
    ("label outside", "negative"),
    ("prediction outside", "high"),
    ("prediction outside", "negative"),
)


def load(seed: str) -> list[Question]:
    """All questions of a seed, in an order that follows from it; ids say nothing about the content."""
    made = [_proper(seed, *row) for row in _PROPER] + [_faulty(seed, *row) for row in _BAD]
    drawing(seed, "per-class", "order").shuffle(made)
    return [Question(f"c{number:02d}", *one) for number, one in enumerate(made, 1)]


Row = tuple[tuple[int, ...], tuple[int, ...], int, str, str]


def _proper(seed: str, name: str, classes: int, images: int, absent: tuple[int, ...], container: str) -> Row:
    rng = drawing(seed, "per-class", name)
    while True:
        predictions, labels = _draw(rng, classes, images, absent)
        question = Question("", predictions, labels, classes, container)
        if _telling(question, absent):
            return predictions, labels, classes, container, ""


def _draw(
    rng: random.Random, classes: int, images: int, absent: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Classes of different size and difficulty; whoever is wrong answers any class, absent ones too."""
    present = [label for label in range(classes) if label not in absent]
    weights = [1 + 2 * rng.random() for _ in present]
    easy = {label: 0.4 + 0.55 * rng.random() for label in present}
    labels = rng.choices(present, weights, k=images)
    predictions = [label if rng.random() < easy[label] else rng.randrange(classes) for label in labels]
    return tuple(predictions), tuple(labels)


def _telling(question: Question, absent: tuple[int, ...]) -> bool:
    """Every class that should have images has some, none is all right or all wrong, and no two values are equal."""
    images, correct, predicted = question.images, question.correct, question.predicted
    present = [label for label in range(question.classes) if label not in absent]
    shares = [correct[label] / images[label] for label in present if images[label]]
    return (
        len(shares) == len(present)
        and all(0 < share < 1 for share in shares)
        and all(images[label] > 2 and images[label] != predicted[label] for label in present[:2])
        and all(predicted[label] for label in range(question.classes))
        and len(set(shares)) > min(len(shares), 4) - 1
    )


def _faulty(seed: str, fault: str, kind: str) -> Row:
    rng = drawing(seed, "per-class", f"bad {fault} {kind}")
    classes, images = rng.randrange(4, 9), rng.randrange(20, 40)
    labels = [*range(classes), *(rng.randrange(classes) for _ in range(images))]
    rng.shuffle(labels)
    predictions = [label if rng.random() < 0.7 else rng.randrange(classes) for label in labels]
    if fault == "lengths":
        predictions = predictions[:-3] if kind == "short" else predictions + predictions[:2]
    else:
        changed = labels if fault == "label outside" else predictions
        # Never first nor last: a look at the ends must not be enough.
        changed[rng.randrange(2, len(changed) - 2)] = classes if kind == "high" else -1
    return tuple(predictions), tuple(labels), classes, "list", fault
