"""The commands of ``dlcases``: one file each, and the table that gives each its name."""
