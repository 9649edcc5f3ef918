"""``python -m multiplay`` is the command line."""

from multiplay.cli import main

if __name__ == "__main__":
    main()
