def per_class_accuracy(predictions, labels, classes):
    if len(predictions) != len(labels):
        raise ValueError("predictions and labels differ in length")
    for value in [*predictions, *labels]:
        if not 0 <= value < classes:
            raise ValueError(f"{value} is no class")
    pairs = sorted(zip([int(a) for a in labels], [int(p) for p in predictions]))
    out = [None] * classes
    start = 0
    while start < len(pairs):
        label, end = pairs[start][0], start
        while end < len(pairs) and pairs[end][0] == label:
            end += 1
        out[label] = sum(p == label for _, p in pairs[start:end]) / (end - start)
        start = end
    return out
