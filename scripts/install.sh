#!/bin/sh
# Installs swarm and its requirements on Debian or Ubuntu: tmux, git, a C
# compiler for the build, and Rust.
#
#   install.sh           Install packages, Rust if it is missing, swarm, its man
#                        pages and completions
#   install.sh --unit    Also install the systemd user unit, without enabling it
#   install.sh --tools-only [PACKAGE...]
#                        Install only the packages
set -eu
cd "$(dirname "$0")/.."

need_rust=1.88

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs the packages whose programs are missing.
packages() {
    wanted=
    for pair in tmux:tmux git:git cc:gcc "$@"; do
        command -v "${pair%%:*}" >/dev/null 2>&1 || wanted="$wanted ${pair##*:}"
    done
    [ -n "$wanted" ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "install.sh: please install:$wanted" >&2
        exit 1
    fi
    as_root apt-get update -q
    # The shell must split the list of packages.
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $wanted
}

# True if cargo is installed and new enough.
rust_is_there() {
    command -v cargo >/dev/null 2>&1 || return 1
    have=$(rustc --version | sed 's/^rustc \([0-9]*\.[0-9]*\).*/\1/')
    [ "$(printf '%s\n%s\n' "$need_rust" "$have" | sort -V | head -n 1)" = "$need_rust" ]
}

rust() {
    # shellcheck source=/dev/null
    [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
    rust_is_there && return 0
    echo "install.sh: Rust $need_rust or newer is missing; installing it with rustup" >&2
    packages curl:curl
    curl --proto '=https' --tlsv1.2 -fsS https://sh.rustup.rs | sh -s -- -y --profile minimal
    # shellcheck source=/dev/null
    . "$HOME/.cargo/env"
}

case ${1:-} in
    "" | --unit) ;;
    --tools-only)
        shift
        packages "$@"
        exit 0
        ;;
    -h | --help)
        sed -n '2,/^set/s/^# \{0,1\}//p' scripts/install.sh
        exit 0
        ;;
    *)
        echo "install.sh: unknown option '$1' (see install.sh --help)" >&2
        exit 2
        ;;
esac

packages
rust
cargo install --path . --locked

bin=${CARGO_INSTALL_ROOT:-${CARGO_HOME:-$HOME/.cargo}}/bin/swarm
share=${XDG_DATA_HOME:-$HOME/.local/share}
mkdir -p "$share/man/man1" "$share/man/man5" "$share/man/man7" "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
cp man/*.1 "$share/man/man1/"
cp man/*.5 "$share/man/man5/"
cp man/*.7 "$share/man/man7/"
"$bin" completions bash >"$share/bash-completion/completions/swarm"
"$bin" completions zsh >"$share/zsh/site-functions/_swarm"
"$bin" completions fish >"$share/fish/vendor_completions.d/swarm.fish"

if [ "${1:-}" = --unit ]; then
    units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
    mkdir -p "$units"
    sed "s|^ExecStart=[^ ]*|ExecStart=$bin|" scripts/swarm.service >"$units/swarm.service"
    echo "installed $units/swarm.service; to use it: systemctl --user enable --now swarm"
fi

echo "installed $bin"
case ":$PATH:" in
    *":$(dirname "$bin"):"*) ;;
    *) echo "install.sh: $(dirname "$bin") is not on your PATH" >&2 ;;
esac
