"""Promises over a period: budgets and contracts, their shadow prices, and a reserve."""
