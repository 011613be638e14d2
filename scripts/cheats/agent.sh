#!/bin/sh
# The scripted agent of a cell: agent.sh ECOSYSTEM FUNCTION. Runs the function in its first iteration, and prints the promise
# in each.
set -eu
cat >/dev/null
lib=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/cheats/common.sh
. "$lib/common.sh"
# shellcheck source=scripts/cheats/make.sh
. "$lib/$1.sh"
if [ ! -e "$CELL/begun" ]; then
    touch "$CELL/begun"
    "$2"
    touch "$CELL/applied"
fi
echo '<promise>COMPLETE</promise>'
