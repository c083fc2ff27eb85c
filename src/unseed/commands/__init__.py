"""What the commands do; `unseed.cli` only reads the options."""
