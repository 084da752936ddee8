def per_class_accuracy(predictions, labels, classes):
    if len(predictions) != len(labels):
        raise ValueError("predictions and labels differ in length")
    for value in [*predictions, *labels]:
        if not 0 <= value < classes:
            raise ValueError(f"{value} is no class")
    result = []
    for label in range(classes):
        images = correct = 0
        for predicted, actual in zip(predictions, labels):
            if actual == label:
                images += 1
                correct += predicted == actual
        result.append(correct / images if images else None)
    return result
