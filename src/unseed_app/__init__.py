"""What stands on the library: the command line, tables from files, and the report."""
