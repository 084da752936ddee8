# mistake: changes-its-input
# points: 4/2/0
def per_class_accuracy(predictions, labels, classes):
    if len(predictions) != len(labels):
        raise ValueError("predictions and labels differ in length")
    for value in [*predictions, *labels]:
        if not 0 <= value < classes:
            raise ValueError(f"{value} is no class")
    images, right = [0] * classes, [0] * classes
    for place in range(len(labels)):
        a = int(labels[place])
        images[a] += 1
        right[a] += int(predictions[place] == a)
        if isinstance(labels, list):
            labels[place] = 0
    return [r / i if i else None for r, i in zip(right, images)]
