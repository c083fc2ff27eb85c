import sys

from unseed._progress import Progress


def test_silent_unless_asked(capsys):
    with Progress().steps("work", 2) as step:
        step(loss=1.0)
    assert capsys.readouterr() == ("", "")


def test_a_bar_with_figures(capsys):
    with Progress(active=True).steps("work", 2) as step:
        step(loss=1.0)
        step(loss=0.25)
    bar = capsys.readouterr().err
    assert "[unseed] work: 100%" in bar
    assert "loss=0.25" in bar


def test_a_line_where_there_is_no_tqdm(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with Progress(active=True).steps("work", 1) as step:
        step(loss=1.0)
    assert "[unseed] work done" in capsys.readouterr().out
