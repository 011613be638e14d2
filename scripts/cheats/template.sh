#!/bin/sh
# Makes the project of an ecosystem, which each cell copies: template.sh ECOSYSTEM. CHEATS_WORLD is the drill's directory.
set -eu
lib=$(cd "$(dirname "$0")" && pwd)
dirs=$(cat "$CHEATS_WORLD/$1.path")
PATH=${dirs:+$dirs:}$PATH
# shellcheck source=scripts/cheats/common.sh
. "$lib/common.sh"
# shellcheck source=scripts/cheats/make.sh
. "$lib/$1.sh"
mkdir -p "$CHEATS_WORLD/templates/$1"
cd "$CHEATS_WORLD/templates/$1"
project
echo 'Roman numerals.' >README.md
git init -q
git add -A
git commit -qm start
