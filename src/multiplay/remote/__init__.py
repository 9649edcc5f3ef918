"""Studies of a service, used as if they were here."""
