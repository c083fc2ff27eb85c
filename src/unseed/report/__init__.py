"""One self-contained HTML page that says how sure a fitted estimator is about each row, and why."""

from unseed.report.writing import check_can_be_written, report, write_report

__all__ = ["check_can_be_written", "report", "write_report"]
