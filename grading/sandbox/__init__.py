"""Students' code behind a wall: ``box.open_box`` starts one, ``Box.run`` runs a submission and asks its function."""
