"""The public names of multiplay.features: each is imported from its module on first use."""

from multiplay.features.rows import FeatureRows as FeatureRows

__all__: list[str]
