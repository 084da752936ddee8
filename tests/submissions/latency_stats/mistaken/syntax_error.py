# mistake: syntax-error
def latency_stats(samples_us, batch_size)
    return {}
