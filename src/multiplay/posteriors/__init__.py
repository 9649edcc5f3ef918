"""Posteriors: what is believed of each arm, and which reports count.

A policy with an index is made of parts:

- a *posterior* (this package) with a *memory*: ``Keep``, ``Discount``, ``Window``, ``Changes`` of
  ``memories.py`` work on every posterior that has the methods that they call;
- a *rule*, ``policies/rules.py``: how a posterior becomes one number for each arm or unit;
- a *planner*, ``policies/planners.py``: how these numbers become a play.

=================  ========================================  =====================
module             posterior                                 arrays of the state
=================  ========================================  =====================
``coins.py``       ``Coins``: beta, of a coin for each unit  p, q
``averages.py``    ``Averages``, ``Normal``: of the units    t, count, sum
``moments.py``     ``Moments``: a Bayesian bootstrap         moments
``pooled.py``      ``Pooled``: a prior that arms share       moments
``by_unit.py``     ``OrderedUnits``: a mean for each unit    by_unit
``features.py``    ``FeatureModel``: by their features       those of its model
=================  ========================================  =====================

Parts are frozen dataclasses of settings. What is learned is in the state of the policy, a flat dict
of arrays with the trials first and the arms second. ``base.py`` has the methods that memories and
rules call; ``Additive`` there defines most of them for sums that only add up.
"""
