# mistake: not-written
def latency_stats(samples_us, batch_size):
    raise NotImplementedError
