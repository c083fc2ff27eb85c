"""What ``--help`` says of the commands for tables; a paragraph is one line, which the terminal breaks."""

FIT = "\n\n".join(
    (
        "Train on a table and write a model folder.",
        "All rows are trained on; how well left-out rows are predicted is printed. What becomes of the columns is remembered "
        "in the model:",
        "- numbers stay as they are;",
        "- true/false, yes/no become 1 and 0;",
        "- dates (YYYY-MM-DD, DD.MM.YYYY, or with slashes where day and month can be told apart; a time may follow) become "
        "days since the first training date;",
        "- other text becomes a category, one column of 0 and 1 for each value: at most 50 values, and a third of the rows.",
        "A missing value (an empty cell, NA, N/A, NaN, null, ?) is refused with its row and column, unless --impute median is "
        "given. A missing target always is.",
        "More than 20,000 rows are trained on in blocks.",
    )
)

PREDICT = "\n\n".join(
    (
        "Predictions and intervals for every row of a table.",
        "The output has the rows and columns of the table in their order, and six columns more for each target y: y_mean, "
        "y_mean_se (its standard error), y_mean_ci_lower and y_mean_ci_upper (confidence interval, for the function), "
        "y_obs_ci_lower and y_obs_ci_upper (prediction interval, for one new observation).",
        "Columns are found by name, in any order. A category that training rows did not have is refused.",
    )
)

REPORT = "\n\n".join(
    (
        "A page to open in a browser: how sure the model is about each row of a table, and why.",
        "Where the table has the target, the page says how accurate the predictions are and whether the intervals hold what "
        "they promise: give it rows that the model was not trained on.",
    )
)
