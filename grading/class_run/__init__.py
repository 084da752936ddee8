"""A class through all stages: submissions to workers, results recorded as they come, continued after any kill."""
