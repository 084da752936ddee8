per_class_accuracy = lambda p, t, k: _of(list(map(int, p)), list(map(int, t)), k)


def _of(p, t, k):
    if len(p) != len(t) or not set(p) | set(t) <= set(range(k)):
        raise ValueError((len(p), len(t)))
    return [sum(1 for a, b in zip(p, t) if a == b == c) / t.count(c) if c in t else None for c in range(k)]
