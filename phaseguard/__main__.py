"""``python -m phaseguard``."""

from phaseguard.cli import run

if __name__ == "__main__":
    run()
