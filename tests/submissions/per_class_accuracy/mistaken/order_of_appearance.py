# mistake: order-of-appearance
# points: 0/0/0
def per_class_accuracy(predictions, labels, classes):
    if len(predictions) != len(labels):
        raise ValueError("predictions and labels differ in length")
    for value in [*predictions, *labels]:
        if not 0 <= value < classes:
            raise ValueError(f"{value} is no class")
    result = {}
    for p, a in zip(predictions, labels):
        right, images = result.get(int(a), (0, 0))
        result[int(a)] = right + int(p == a), images + 1
    return [right / images for right, images in result.values()]
