"""`python -m extender` is the command `extender`."""

from extender.cli.main import main

if __name__ == "__main__":
    main()
