"""The instructor's side: course, hidden fixtures, checks, sandbox, runner. Never shipped to students."""
