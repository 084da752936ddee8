"""From one timing to a record: the trial loop, fresh processes, what a record holds, and the statistics on it."""
