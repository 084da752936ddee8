# mistake: hard-coded
# points: 0/0/0
def per_class_accuracy(predictions, labels, classes):
    return [None] * classes
