# mistake: raises-on-good-input
def latency_stats(samples_us, batch_size):
    raise ValueError("no")
