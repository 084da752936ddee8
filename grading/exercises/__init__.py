"""One folder an exercise whose function is asked hidden questions: the questions, the judge and the known mistakes."""
