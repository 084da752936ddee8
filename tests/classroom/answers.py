"""What the students of the walk type into the cells, found by a line that stands there: {line: what to type}."""

__all__ = ["INTERPOLATED", "RIGHT", "step7", "step8"]

RIGHT = """def latency_stats(samples_us, batch_size):
    times = sorted(float(one) for one in samples_us)
    if not times or not all(math.isfinite(one) and one > 0 for one in times):
        raise ValueError("expected finite times above zero, and at least one")
    if batch_size < 1 or batch_size != int(batch_size):
        raise ValueError("expected a whole number of images, at least 1")
    n = len(times)
    middle = (times[(n - 1) // 2] + times[n // 2]) / 2
    rank = -(-95 * n // 100)
    rate = batch_size * n * 1_000_000 / sum(times)
    return {"n": n, "p50_us": middle, "p95_us": times[rank - 1], "images_per_second": rate}
"""

INTERPOLATED = RIGHT.replace("times[rank - 1]", "float(__import__('numpy').percentile(times, 95))")

_TIMER = """inside_the_timer = {
    "loading the model file": False,
    "turning uint8 pixels into float32": False,
    "the multiplications of the network": True,
    "the warm-up calls": False,
    "sending the answer over the network": False,
}
"""

_BY_HAND = """images = 9600
seconds = 3
images_per_second = 3200
calls_per_second = 100
"""

_SAME_ROUNDS = """set_a = [[10] * 20, [20] * 20, [1] * 18 + [100, 500]]
set_b = [[10] * 20, [20] * 20, [100] * 20]
"""

_MEMORY = """file_bytes_saved = record["models"]["fp32"]["bytes"] - record["models"]["int8"]["bytes"]
share_of_peak_percent = 100 * file_bytes_saved / record["runs"][0]["peak_rss_bytes"]
"""

_MEETING = """word = {"faster": "true", "slower": "false", "inconclusive": "open"}
the_file_is_smaller = "true"
int8_is_faster_at_batch_1_on_this_machine = word[verdicts["1"]]
int8_is_faster_at_batch_32_on_this_machine = word[verdicts["32"]]
on_all_digits_of_the_world_it_loses_less_than_1_point = "open"
it_is_faster_on_our_customers_devices = "open"
"""

_CLAIMS = """claims = {
    "decision": "release",
    "target_benchmark_required": True,
    "universally_faster": False,
    "not_claimed": [
        "latency on the real device, which nobody has measured yet",
        "memory on the real device: the peaks belong to this Python process",
        "power on the real device: no meter was connected",
        "a hard real-time bound: p95 leaves one call in twenty open",
        "that the times are authentic: a hash does not watch the clock",
    ],
}
"""

_SCOPE = """1. From a batch ready in memory to the end of `engine.run`.
2. Whoever sends one picture waits for one call at batch 1, and for everything outside the timer.
3. Regression and times, both: a new hash over old samples is false.
4. A class that fell, or a p95 beyond the objective on the real device.
"""


def step7(latency_stats: str) -> dict[str, str]:
    """The cells of step 7 with this function."""
    return {
        "inside_the_timer = {": _TIMER,
        "faster_at_batch_1 = None": 'faster_at_batch_1 = "int8"\nfaster_at_batch_32 = "int8"\n',
        "images = None": _BY_HAND,
        "set_a = [[], [], []]": _SAME_ROUNDS,
        "def latency_stats(samples_us": latency_stats,
        "file_bytes_saved = None": _MEMORY,
    }


def step8() -> dict[str, str]:
    """The cells of step 8."""
    return {
        "limit_bytes = None": "limit_bytes = 32_768\npictures_that_may_be_lost = 5\n",
        "the_file_is_smaller = None": _MEETING,
        "claims = {}": _CLAIMS,
        "YOUR ANSWER HERE": _SCOPE,
    }
