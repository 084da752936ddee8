from itertools import groupby


def per_class_accuracy(predictions, labels, classes):
    if len(predictions) != len(labels):
        raise ValueError("predictions and labels differ in length")
    for value in [*predictions, *labels]:
        if not 0 <= value < classes:
            raise ValueError(f"{value} is no class")
    answer = dict.fromkeys(range(classes))
    for c, group in groupby(sorted(zip(map(int, labels), map(int, predictions))), key=lambda pair: pair[0]):
        members = list(group)
        answer[c] = sum(a == b for a, b in members) / len(members)
    return list(answer.values())
