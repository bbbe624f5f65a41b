"""Voting over several answers to one question: comparable forms, rules, and when to stop asking."""

from phaseguard.voting.ballots import Ballot, Group, Grouping, answer_probability, group
from phaseguard.voting.extract import extract
from phaseguard.voting.forms import Form
from phaseguard.voting.meaning import group_by_embedding, group_by_judge
from phaseguard.voting.rules import Candidate, Decision, Tie, decide, decide_or_tie
from phaseguard.voting.stopping import Budget, Cost, Pending, Stop, agreeing, probable, settled, spent
from phaseguard.voting.structures import calls_text

__all__ = [
    "Ballot",
    "Budget",
    "Candidate",
    "Cost",
    "Decision",
    "Form",
    "Group",
    "Grouping",
    "Pending",
    "Stop",
    "Tie",
    "agreeing",
    "answer_probability",
    "calls_text",
    "decide",
    "decide_or_tie",
    "extract",
    "group",
    "group_by_embedding",
    "group_by_judge",
    "probable",
    "settled",
    "spent",
]
