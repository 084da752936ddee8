# No library at all.
def merge(left, right):
    out = []
    while left and right:
        out.append(left.pop(0) if left[0] <= right[0] else right.pop(0))
    return out + left + right


def merge_sort(xs):
    if len(xs) < 2:
        return list(xs)
    half = len(xs) // 2
    return merge(merge_sort(xs[:half]), merge_sort(xs[half:]))


def latency_stats(samples_us, batch_size):
    count = 0
    total = 0
    for s in samples_us:
        if s != s or s in (float("inf"), float("-inf")) or s <= 0:
            raise ValueError("bad sample")
        count += 1
        total += s
    if count == 0:
        raise ValueError("no sample")
    if batch_size < 1 or batch_size // 1 != batch_size:
        raise ValueError("bad batch")
    xs = merge_sort(samples_us)
    rank = 0
    while rank * 100 < 95 * count:
        rank += 1
    middle = (xs[count // 2] + xs[(count - 1) // 2]) / 2.0
    return {"n": count, "p50_us": middle, "p95_us": xs[rank - 1], "images_per_second": 1e6 * count * batch_size / total}
