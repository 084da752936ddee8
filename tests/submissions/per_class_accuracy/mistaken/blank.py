# mistake: not-written
# points: 0/0/0
def per_class_accuracy(predictions, labels, classes):
    raise NotImplementedError()
