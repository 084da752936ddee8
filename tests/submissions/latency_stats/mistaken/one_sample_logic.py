# mistake: one-call-for-all
def latency_stats(samples_us, batch_size):
    x = samples_us[0]
    return {"n": len(samples_us), "p50_us": min(samples_us), "p95_us": min(samples_us), "images_per_second": batch_size * 1e6 / x}
