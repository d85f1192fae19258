"""`python -m extender` is the command `extender`."""

from extender.cli.app import main

if __name__ == "__main__":
    main()
