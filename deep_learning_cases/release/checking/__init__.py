"""What each file of the evidence should say, computed again from the others, and every place where it says else."""
