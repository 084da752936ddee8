import numpy as np


def per_class_accuracy(predictions, labels, classes):
    predictions, labels = np.asarray(predictions), np.asarray(labels)
    if predictions.shape != labels.shape:
        raise ValueError("shapes differ")
    both = np.concatenate([predictions, labels])
    if both.min() < 0 or both.max() >= classes:
        raise ValueError("not a class")
    return [float((predictions[labels == c] == c).mean()) if (labels == c).any() else None for c in range(classes)]
