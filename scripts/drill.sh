#!/bin/sh
# The fault drill: see the head of drill.pl. SWARM names the program under test; without it, it is built here.
#
#   scripts/drill.sh [--seconds N] [--seed S] [--workers N]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${SWARM:-}" ]; then
    (cd "$here/.." && cargo build --locked)
    SWARM=$here/../target/debug/swarm
fi
exec perl "$here/drill.pl" "$SWARM" "$@"
