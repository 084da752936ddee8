"""What nbgrader and formgrader call in place of their own: converters, preprocessors, pages, configuration."""
