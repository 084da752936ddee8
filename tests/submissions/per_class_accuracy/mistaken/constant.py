# mistake: hard-coded
# points: 0/0/0
def per_class_accuracy(predictions, labels, classes):
    return [0.98] * classes
