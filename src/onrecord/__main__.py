"""`python -m onrecord`."""

from onrecord.apps.cli import main

if __name__ == "__main__":
    main()
