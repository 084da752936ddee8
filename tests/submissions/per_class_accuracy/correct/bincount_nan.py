import numpy as np


def per_class_accuracy(predictions, labels, classes):
    predictions, labels = np.array(predictions), np.array(labels)
    if len(predictions) != len(labels) or np.any((predictions < 0) | (predictions >= classes)):
        raise ValueError("predictions")
    if np.any(labels >= classes):
        raise ValueError("labels")
    images = np.bincount(labels, minlength=classes)  # refuses negative labels with ValueError
    right = np.bincount(labels[predictions == labels], minlength=classes)
    with np.errstate(invalid="ignore"):
        return right / images
