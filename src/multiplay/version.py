"""The version, where everything can read it, and the commit of the source."""

__version__ = "0.10.0.dev6"


def described() -> str:
    """Return name and version, with the commit where it is known."""
    known = commit()
    return f"multiplay {__version__}" + (f" (commit {known})" if known else "")


def commit() -> str:
    """Return the commit that the build recorded, or that of a checkout; empty if neither is known.

    ``+changes`` after it says that files of the checkout differ from it.
    """
    import subprocess  # not with the module: each import of multiplay imports this one
    from pathlib import Path

    recorded, root = Path(__file__).with_name("commit.txt"), Path(__file__).parents[2]
    if recorded.is_file():  # of a wheel or a source distribution: tools/record_commit.py
        return recorded.read_text("utf-8").strip()
    if not (root / ".git").exists():
        return ""
    git = ["git", f"--git-dir={root / '.git'}", f"--work-tree={root}"]
    try:
        said = subprocess.run(
            [*git, "describe", "--always", "--abbrev=7", "--exclude=*", "--dirty=+changes"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:  # no git
        return ""
    return said.stdout.strip()
