#!/bin/sh
# Builds the static executable that `swarm host install` copies to other machines.
#
#   scripts/package.sh [TARGET]    The Rust target; the musl one of this machine if omitted
#
# The result is ~/.local/share/swarm/swarm-static (below XDG_DATA_HOME if that is set).
set -eu
cd "$(dirname "$0")/.."
target=${1:-$(uname -m)-unknown-linux-musl}
if command -v rustup >/dev/null 2>&1; then
    rustup target add "$target"
fi
cargo build --release --locked --bin swarm --target "$target"
built=${CARGO_TARGET_DIR:-target}/$target/release/swarm
dir=${XDG_DATA_HOME:-$HOME/.local/share}/swarm
mkdir -p "$dir"
# A rename replaces a file that runs.
cp "$built" "$dir/.swarm-static.new"
mv -f "$dir/.swarm-static.new" "$dir/swarm-static"
echo "$dir/swarm-static"
sha256sum "$dir/swarm-static"
