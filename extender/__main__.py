"""Run the command `extender` for `python -m extender`."""

from extender.cli.main import main

if __name__ == "__main__":
    main()
