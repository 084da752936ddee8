import numpy as np


def per_class_accuracy(predictions, labels, classes):
    if len(predictions) != len(labels):
        raise ValueError("predictions and labels differ in length")
    for value in [*predictions, *labels]:
        if not 0 <= value < classes:
            raise ValueError(f"{value} is no class")
    table = np.zeros((classes, classes), int)
    np.add.at(table, (np.asarray(labels), np.asarray(predictions)), 1)
    return tuple(row[c] / row.sum() if row.sum() else float("nan") for c, row in enumerate(table))
