#!/bin/sh
# Keep prompt templates tidy in CI: fails when decoration would move tokens, and shows what to change.
#
#   sh examples/normalize_in_ci.sh prompts/*.md
set -eu

if phaseguard normalize --check "$@"; then
    echo "prompts are tidy"
else
    code=$?
    [ "$code" -eq 1 ] && phaseguard normalize --diff "$@"
    exit "$code"
fi
