"""One self-contained HTML page that says how sure a fitted estimator is about each row, and why."""

from unseed_app.report.content import Report, build, checked_rows
from unseed_app.report.outputs import n_pieces, predict_in_pieces
from unseed_app.report.page import check_can_be_written, in_short, write_page, write_report

__all__ = [
    "Report",
    "build",
    "check_can_be_written",
    "checked_rows",
    "in_short",
    "n_pieces",
    "predict_in_pieces",
    "write_page",
    "write_report",
]
