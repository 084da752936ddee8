# mistake: absent-classes-left-out
# points: 4/0/1
import numpy as np


def per_class_accuracy(predictions, labels, classes):
    if len(predictions) != len(labels):
        raise ValueError("predictions and labels differ in length")
    for value in [*predictions, *labels]:
        if not 0 <= value < classes:
            raise ValueError(f"{value} is no class")
    predictions, labels = np.asarray(predictions), np.asarray(labels)
    return [float(np.mean(predictions[labels == c] == c)) for c in np.unique(labels)]
