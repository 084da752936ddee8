# mistake: accepts-bad-input
# points: 4/2/0
def per_class_accuracy(predictions, labels, classes):
    if len(predictions) != len(labels):
        raise ValueError
    result = []
    for label in range(classes):
        images = sum(int(a == label) for a in labels)
        right = sum(int(p == a == label) for p, a in zip(predictions, labels))
        predicted = sum(int(p == label) for p in predictions)
        n = len(labels)
        result.append(right / images if images else None)
    return result
