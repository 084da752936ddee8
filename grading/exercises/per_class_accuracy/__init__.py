"""``per_class_accuracy``: the share of the images of each class that was recognised."""
