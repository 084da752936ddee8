def per_class_accuracy(predictions, labels, classes):
    if len(predictions) != len(labels):
        raise ValueError("predictions and labels differ in length")
    for value in [*predictions, *labels]:
        if not 0 <= value < classes:
            raise ValueError(f"{value} is no class")
    print("classes:", classes)
    shares = []
    for c in range(classes):
        own = [i for i in range(len(labels)) if labels[i] == c]
        share = sum(1 for i in own if predictions[i] == c) / len(own) if own else None
        print(c, "-" if share is None else f"{100 * share:.0f} %")
        shares.append(share)
    return shares
