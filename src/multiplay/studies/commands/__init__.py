"""Commands: the verbs of a study, each with its arguments, its entry, its replay and its result."""
