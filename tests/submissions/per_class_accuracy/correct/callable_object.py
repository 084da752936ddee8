import math


class PerClass:
    def __call__(self, predictions, labels, classes):
        p, t = [int(x) for x in predictions], [int(x) for x in labels]
        if len(p) != len(t) or min(p + t) < 0 or max(p + t) > classes - 1:
            raise ValueError
        return [self.one(p, t, c) for c in range(classes)]

    def one(self, p, t, c):
        mine = [a for a, b in zip(p, t) if b == c]
        return math.nan if not mine else mine.count(c) / len(mine)


per_class_accuracy = PerClass()
