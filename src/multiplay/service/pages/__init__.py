"""Pages for people: what a study plans, what it cost, and forms to ask and to tell."""
