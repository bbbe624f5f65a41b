"""Profiles: what is known of a model's phases, shipped and the user's own."""

from phaseguard.profiles.model import PhaseProfile, Provenance, Reported, ShapeStrength
from phaseguard.profiles.store import (
    ProfileEntry,
    list_profiles,
    load_profile,
    read_profile,
    save_profile,
    user_folder,
)

__all__ = [
    "PhaseProfile",
    "ProfileEntry",
    "Provenance",
    "Reported",
    "ShapeStrength",
    "list_profiles",
    "load_profile",
    "read_profile",
    "save_profile",
    "user_folder",
]
