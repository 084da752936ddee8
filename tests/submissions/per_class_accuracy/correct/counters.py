from collections import Counter


def per_class_accuracy(predictions, labels, classes):
    if len(predictions) != len(labels):
        raise ValueError("predictions and labels differ in length")
    for value in [*predictions, *labels]:
        if not 0 <= value < classes:
            raise ValueError(f"{value} is no class")
    images = Counter(int(label) for label in labels)
    right = Counter(int(a) for p, a in zip(predictions, labels) if p == a)
    return [right[c] / images[c] if c in images else None for c in range(classes)]
