"""Belief model of a learner: moments of the losses of each arm, and the posterior of their means.

It does not depend on the policy. Losses are in [0, 1] here, with one origin for all arms.
"""
