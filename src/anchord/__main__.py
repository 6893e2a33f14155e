"""Run the command line as `python -m anchord`."""

from anchord.cli import main

if __name__ == "__main__":
    main()
