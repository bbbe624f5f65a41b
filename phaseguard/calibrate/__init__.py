"""Calibration: which phases are strong on a deployment, with honest statistics.

``calibrate(OpenAIEndpoint(url, model), "deepseek-v4-flash")`` asks records at every phase, judges, and saves
what was found as a profile. Modules: ``items`` and ``shifts`` (what is asked), ``endpoint`` and ``openai``
(who is asked), ``check``, ``plan``, ``runner`` and ``record`` (how), ``judge`` and ``power`` (what it means),
``outcome`` (the profile that follows).
"""

from phaseguard.calibrate.api import calibrate
from phaseguard.calibrate.endpoint import Endpoint, Outcome, Question, Reply, TokenChoice
from phaseguard.calibrate.facts import PassageFacts
from phaseguard.calibrate.items import Item, Language
from phaseguard.calibrate.ondevice import LabEndpoint, LabLanguage, lab_profile
from phaseguard.calibrate.openai import OpenAIEndpoint
from phaseguard.calibrate.outcome import Calibration
from phaseguard.calibrate.plan import Plan, make_plan
from phaseguard.calibrate.revalidate import Revalidation, revalidate
from phaseguard.calibrate.settings import base_profile
from phaseguard.calibrate.standard import StandardLanguage
from phaseguard.ensemble import Prices

__all__ = [
    "Calibration",
    "Endpoint",
    "Item",
    "LabEndpoint",
    "LabLanguage",
    "Language",
    "OpenAIEndpoint",
    "Outcome",
    "PassageFacts",
    "Plan",
    "Prices",
    "Question",
    "Reply",
    "Revalidation",
    "StandardLanguage",
    "TokenChoice",
    "base_profile",
    "calibrate",
    "lab_profile",
    "make_plan",
    "revalidate",
]
