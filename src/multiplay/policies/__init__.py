"""Policies: how to learn. One algorithm, one file."""

from multiplay.policies.base import Play, Policy
from multiplay.policies.duplicated import Duplicated
from multiplay.policies.gencts import GenCTS
from multiplay.policies.genlbinfv import GenLBINFV

__all__ = ["Duplicated", "GenCTS", "GenLBINFV", "Play", "Policy"]
