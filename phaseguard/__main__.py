"""``python -m phaseguard``."""

import sys

from phaseguard.cli import main

if __name__ == "__main__":
    sys.exit(main())
