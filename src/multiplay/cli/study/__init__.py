"""Commands of studies: one module for each group."""
