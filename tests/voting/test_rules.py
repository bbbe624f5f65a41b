"""Who wins, against a count by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import InputError
from phaseguard.voting import Ballot, Decision, Tie, decide, decide_or_tie, group

RULES = ["majority", "weighted", "probability", "probability-sum"]
tenths = st.integers(1, 10)
cast_votes = st.lists(st.tuples(st.sampled_from("ABC"), tenths, tenths), min_size=1, max_size=8)


def cast_of(votes) -> list[Ballot]:
    return [
        Ballot(layout, answer, strength=strength / 10, probability=probability / 10)
        for layout, (answer, strength, probability) in enumerate(votes)
    ]


def tally(votes, rule: str) -> dict[str, Fraction]:
    """Exact scores of answers."""
    scores: dict[str, Fraction] = {}
    for answer, strength, probability in votes:
        before = scores.get(answer, Fraction(0))
        counts = {"majority": 10, "weighted": strength}.get(rule, probability)
        scores[answer] = (
            max(before, Fraction(counts, 10)) if rule == "probability" else before + Fraction(counts, 10)
        )
    return scores


def ranked(votes, rule: str) -> list[str]:
    """Answers by exact score, then by their first ballot."""
    scores = tally(votes, rule)
    return sorted(scores, key=lambda answer: -scores[answer])


@pytest.mark.parametrize("rule", RULES)
@given(votes=cast_votes)
def test_answers_are_ranked_by_the_exact_score(rule, votes):
    decision = decide(group(cast_of(votes)), rule)
    assert [candidate.answer for candidate in decision.candidates] == ranked(votes, rule)
    scores = tally(votes, rule)
    assert {one.answer: one.score for one in decision.candidates} == pytest.approx(
        {answer: float(score) for answer, score in scores.items()}
    )
    best = max(scores.values())
    assert decision.tie_broken == (list(scores.values()).count(best) > 1)
    assert decision.winner.support == sum(answer == decision.answer for answer, *_ in votes)
    assert decision.agreement == decision.winner.support / len(votes)


@pytest.mark.parametrize("rule", RULES)
@given(votes=cast_votes)
def test_a_tie_is_reported_with_all_that_tie_and_only_then(rule, votes):
    found = group(cast_of(votes))
    outcome, scores = decide_or_tie(found, rule), tally(votes, rule)
    best = [answer for answer in ranked(votes, rule) if scores[answer] == max(scores.values())]
    if len(best) == 1:
        assert outcome == decide(found, rule)
    else:
        assert isinstance(outcome, Tie)
        assert [candidate.answer for candidate in outcome.tied] == best
        assert outcome.candidates == decide(found, rule).candidates


def test_the_tally_sees_a_forgotten_ballot():
    votes = [("A", 3, 5), ("B", 1, 9), ("B", 1, 2)]
    assert ranked(votes, "majority") == ["B", "A"]
    assert ranked(votes[:2], "majority") == ["A", "B"]
    assert ranked(votes, "weighted") == ["A", "B"]
    assert ranked(votes, "probability") == ["B", "A"]


@pytest.mark.parametrize("rule", RULES)
@given(votes=cast_votes, random=st.randoms())
def test_the_order_of_ballots_does_not_matter(rule, votes, random):
    cast = cast_of(votes)
    expected = decide(group(cast), rule)
    random.shuffle(cast)
    assert decide(group(cast), rule) == expected


@pytest.mark.parametrize("rule", RULES)
@given(votes=cast_votes, more=st.tuples(tenths, tenths))
def test_another_ballot_for_the_winner_leaves_it_the_winner(rule, votes, more):
    answer = decide(group(cast_of(votes)), rule).answer
    assert decide(group(cast_of([*votes, (answer, *more)])), rule).answer == answer


def test_sums_of_tenths_tie_in_any_order():
    three = group([Ballot(0, "A", strength=0.3), Ballot(1, "B", strength=0.1), Ballot(2, "B", strength=0.2)])
    decision = decide(three, "weighted")
    assert decision.answer == "A"
    assert decision.tie_broken


def test_missing_ballots_are_told_and_do_not_count():
    decision = decide(group([Ballot(0, None), Ballot(1, "x"), Ballot(2, " ")]))
    assert isinstance(decision, Decision)
    assert (decision.answer, decision.missing, decision.agreement) == ("x", 2, 1.0)


def test_without_an_answer_nothing_is_decided():
    with pytest.raises(InputError, match="None of 2 ballots holds an answer"):
        decide(group([Ballot(0, None), Ballot(1, "")]))
    with pytest.raises(InputError, match="None of 0 ballots"):
        decide_or_tie(group([]))


@pytest.mark.parametrize(
    ("rule", "needs"),
    [("weighted", "strength"), ("probability", "probability"), ("probability-sum", "probability")],
)
def test_a_ballot_without_what_the_rule_needs_is_refused(rule, needs):
    cast = [Ballot(0, "x", strength=1, probability=1), Ballot(1, "y")]
    with pytest.raises(InputError, match=f"layout 1 has no {needs}"):
        decide(group(cast), rule)


def test_an_unknown_rule_is_refused():
    with pytest.raises(InputError, match="Did you mean 'majority'"):
        decide(group([Ballot(0, "x")]), "majorty")
