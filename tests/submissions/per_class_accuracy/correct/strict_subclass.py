class WrongInput(ValueError):
    pass


def per_class_accuracy(predictions, labels, classes):
    if len(predictions) - len(labels):
        raise WrongInput("length")
    ok = set(range(classes))
    if any(int(x) not in ok for seq in (predictions, labels) for x in seq):
        raise WrongInput("class")
    total, hit = {}, {}
    for p, a in zip(predictions, labels):
        a = int(a)
        total[a] = total.get(a, 0) + 1
        hit[a] = hit.get(a, 0) + (p == a)
    return [hit[c] / total[c] if c in total else None for c in range(classes)]
