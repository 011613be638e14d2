#!/bin/sh
# Breaks things at random and checks that every promise of swarm holds; the head of drill.pl has the details.
#
#   scripts/drill.sh [--seconds N] [--seed S] [--workers N]
#
# SWARM is the program to test. If it is not set, the script builds swarm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${SWARM:-}" ]; then
    (cd "$here/.." && cargo build --locked)
    SWARM=$here/../target/debug/swarm
fi
exec perl "$here/drill.pl" "$SWARM" "$@"
