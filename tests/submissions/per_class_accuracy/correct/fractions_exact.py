from fractions import Fraction


def per_class_accuracy(predictions, labels, classes):
    if len(predictions) != len(labels):
        raise ValueError("predictions and labels differ in length")
    for value in [*predictions, *labels]:
        if not 0 <= value < classes:
            raise ValueError(f"{value} is no class")
    hits = [[p == a for p, a in zip(predictions, labels) if a == c] for c in range(classes)]
    return [Fraction(int(sum(map(int, h))), len(h)) if h else None for h in hits]
