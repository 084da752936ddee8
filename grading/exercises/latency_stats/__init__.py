"""``latency_stats``: median, 95th percentile and throughput from raw samples."""
