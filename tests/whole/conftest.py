"""The tests of the whole way have the same folder for temporary files as those of the grader, watched as well."""

from tests.grading.conftest import nothing_is_left, pytest_runtest_setup, pytest_runtest_teardown

__all__ = ["nothing_is_left", "pytest_runtest_setup", "pytest_runtest_teardown"]
