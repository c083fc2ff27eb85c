"""What the commands do; `unseed_app.cli` only reads the options."""
