from hypothesis import settings

from postgres import postgresql

__all__ = ["postgresql"]  # a fixture: whoever asks for it pays for the start

# kernels compile on their first call, so a single example may take seconds
settings.register_profile("multiplay", deadline=None, max_examples=60)
settings.load_profile("multiplay")
