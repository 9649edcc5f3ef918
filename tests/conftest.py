from hypothesis import settings

# kernels compile on their first call, so a single example may take seconds
settings.register_profile("multiplay", deadline=None, max_examples=60)
settings.load_profile("multiplay")
