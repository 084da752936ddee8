# mistake: error-rate
# points: 0/0/0
def per_class_accuracy(predictions, labels, classes):
    if len(predictions) != len(labels):
        raise ValueError("predictions and labels differ in length")
    for value in [*predictions, *labels]:
        if not 0 <= value < classes:
            raise ValueError(f"{value} is no class")
    result = []
    for label in range(classes):
        images = sum(int(a == label) for a in labels)
        right = sum(int(p == a == label) for p, a in zip(predictions, labels))
        predicted = sum(int(p == label) for p in predictions)
        n = len(labels)
        result.append(1 - right / images if images else None)
    return result
