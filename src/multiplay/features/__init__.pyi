"""The public names of multiplay.features: each is imported from its module on first use."""

from multiplay.features.columns import (
    Category as Category,
    Flag as Flag,
    Number as Number,
)
from multiplay.features.rows import FeatureRows as FeatureRows
from multiplay.features.schema import Features as Features
