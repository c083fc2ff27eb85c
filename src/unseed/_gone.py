"""Names that are no more, and what to write instead."""

GONE = {
    "BlockwisePNCRegressor": (
        "BlockwisePNCRegressor is gone: PNCRegressor takes any number of rows (fit, partial_fit, fit_stream), and "
        "PNCRegressor(solver='all_rows') is what centre='full' was"
    ),
}
