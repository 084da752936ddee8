# mistake: cumulative
# points: 0/0/0
def per_class_accuracy(predictions, labels, classes):
    if len(predictions) != len(labels):
        raise ValueError("predictions and labels differ in length")
    for value in [*predictions, *labels]:
        if not 0 <= value < classes:
            raise ValueError(f"{value} is no class")
    result, images, right = [], 0, 0
    for label in range(classes):
        for p, a in zip(predictions, labels):
            images += int(a == label)
            right += int(p == a == label)
        result.append(right / images if images else None)
    return result
