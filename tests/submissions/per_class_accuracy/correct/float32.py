import numpy as np


def per_class_accuracy(predictions, labels, classes):
    if len(predictions) != len(labels):
        raise ValueError("predictions and labels differ in length")
    for value in [*predictions, *labels]:
        if not 0 <= value < classes:
            raise ValueError(f"{value} is no class")
    right, images = np.zeros(classes, np.float32), np.zeros(classes, np.float32)
    for predicted, label in zip(predictions, labels):
        images[label] += 1
        right[label] += np.float32(predicted == label)
    return np.divide(right, images, out=np.full(classes, np.nan, np.float32), where=images > 0)
