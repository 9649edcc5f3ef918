"""``python -m multiplay`` is the command line."""


def main() -> None:
    """Run the command line; workers, which import this module too, never need it."""
    from multiplay.cli import main

    main()


if __name__ == "__main__":
    main()
