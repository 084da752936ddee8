"""``report.html``: facts, figures and parts of a page for somebody who was not there."""
