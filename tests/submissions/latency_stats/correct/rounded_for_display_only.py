# Prints rounded numbers, returns the full ones; six decimals are not a rounding that matters.
import math
import statistics as st


def latency_stats(samples_us, batch_size):
    if len(samples_us) == 0 or batch_size != int(batch_size) or batch_size <= 0:
        raise ValueError("input")
    if any(not math.isfinite(s) for s in samples_us) or any(s <= 0 for s in samples_us):
        raise ValueError("samples")
    values = sorted(samples_us)
    n = len(values)
    p50 = st.median(values)
    p95 = values[math.ceil(n * 0.95) - 1]
    print(f"p50 {p50:.1f} us, p95 {p95:.1f} us")
    return {"n": n, "p50_us": round(float(p50), 6), "p95_us": round(float(p95), 6),
            "images_per_second": batch_size * n * 1_000_000 / float(sum(values))}
