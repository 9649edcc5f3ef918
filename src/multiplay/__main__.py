"""``python -m multiplay`` is the command line."""

import sys

from multiplay.version import described


def main() -> None:
    """Run the command line; workers, which import this module too, never need it."""
    if sys.argv[1:] == ["--version"]:  # scripts ask often: no need to load anything for it
        print(described())
        return
    from multiplay.cli import main

    main()


if __name__ == "__main__":
    main()
