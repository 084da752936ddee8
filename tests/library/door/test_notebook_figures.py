"""A figure in a notebook says what it shows, to those who see it and to those who do not."""

import pytest

from deep_learning_cases import notebook_figures
from deep_learning_cases.ground.figures import panels

WORDS = 'the p95 is < 40 us & "int8" is above it'


def test_the_picture_carries_its_words_and_nothing_in_them_is_markup():
    figure, _ = panels(1, 3)
    bundle = notebook_figures.DescribedFigure(figure, WORDS)._repr_mimebundle_()
    assert bundle["text/html"].startswith(
        '<img alt="the p95 is &lt; 40 us &amp; &quot;int8&quot; is above it" src="data:image/png;base64,iVBORw0KGgo'
    )
    assert WORDS in bundle["text/plain"]
    assert set(bundle) == {"text/html", "text/plain"}


def test_showing_prints_the_words_and_leaves_no_figure_open(capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("IPython")
    pyplot.switch_backend("Agg")
    before = pyplot.get_fignums()
    figure, _ = pyplot.subplots()
    notebook_figures.show(figure, WORDS)
    assert f"In words: {WORDS}\n" in capsys.readouterr().out
    assert pyplot.get_fignums() == before


def test_the_words_survive_what_feedback_takes_away():
    from grading.submission.sanitise import clean_outputs

    figure, _ = panels(1, 3)
    bundle = notebook_figures.DescribedFigure(figure, WORDS)._repr_mimebundle_()
    (output,) = clean_outputs([{"output_type": "display_data", "data": bundle, "metadata": {}}])
    assert output["data"]["text/html"] == bundle["text/html"].replace("&quot;", "&quot;")
