# mistake: no-function
# points: 0/0/0
def per_class(predictions, labels, classes):
    return []
