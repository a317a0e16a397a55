"""Numbers beside printed ones: HTML, CSV, Markdown."""

from __future__ import annotations

from symsmooth_repro.tables import Compared, Table


def test_differences_are_rounded_as_they_are_shown() -> None:
    cell = Compared(28.964, 28.89)
    assert cell.difference_text == "+0.07"
    assert Compared(28.888, 28.89).difference_text == "0.00"
    assert Compared(90, 100, 0, relative=True).difference_text == "\N{MINUS SIGN}10 %"
    assert [Compared(a, 10.0).level for a in (9.0, 9.96, 10.04, 10.05, 10.7)] == [-4, 0, 0, 1, 4]


def test_one_table_in_three_forms() -> None:
    table = Table(
        "T", ["", "a", "b"], [["r", Compared(1.234, 1.0), 2], ["s", Compared(None, 3.0), None]]
    )
    assert table.to_csv().splitlines() == [
        ",a,a (paper),a (difference),b",
        "r,1.234,1.0,0.23,2",
        "s,,3.0,,",
    ]
    assert "| r | 1.23 (1.00) | 2 |" in table.to_markdown()
    html = table.to_html()
    assert html.count("<td") == 4
    assert "level-up-2" in html
