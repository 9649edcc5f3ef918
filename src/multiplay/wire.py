"""Sets, plays and tables as JSON, for a service and its clients: each way there and back."""
