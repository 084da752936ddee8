"""The instructor's side: course, sandbox, judges, a class on its way through them. Never shipped to students."""
