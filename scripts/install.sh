#!/bin/sh
# Installs swarm and its requirements on Debian or Ubuntu: tmux, git, a C
# compiler for the build, and Rust.
#
#   install.sh           Install packages, Rust if it is missing, swarm, its man
#                        pages and completions
#   install.sh --unit    Also install the systemd user unit, without enabling it
#   install.sh --uninstall
#                        Remove these files again. Workers, logs and settings stay
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

# The directory for zsh's completion: the first of the user's fpath that is meant for such files and can be written.
# Otherwise one that the user has to add.
zsh_dir() {
    if command -v zsh >/dev/null 2>&1; then
        # zsh expands the text.
        # shellcheck disable=SC2016
        zsh -ic 'print -rl -- $fpath' </dev/null 2>/dev/null | while read -r dir; do
            case $dir in
                */site-functions | */completions | */.zfunc)
                    if [ -d "$dir" ] && [ -w "$dir" ]; then
                        echo "$dir"
                        break
                    fi
                    ;;
            esac
        done
    fi
}

# Removes swarm's man pages below a directory.
remove_pages() {
    rm -f "$1"/man1/swarm.1 "$1"/man1/swarm-*.1 "$1"/man5/swarm-*.5 "$1"/man7/swarm-*.7
}

# True if a daemon runs. Does not start one. Status 4 is a daemon of another protocol.
daemon_runs() {
    code=0
    "$bin" daemon status >/dev/null 2>&1 || code=$?
    [ $code = 0 ] || [ $code = 4 ]
}

# Prints the line that puts the program on PATH, and the file of the user's shell for it.
say_path() {
    case ${SHELL:-} in
        */fish) echo "to find swarm, run:  fish_add_path '$(dirname "$bin")'" ;;
        */zsh) echo "to find swarm, add this line to ~/.zshrc:  export PATH=\"$(dirname "$bin"):\$PATH\"" ;;
        *) echo "to find swarm, add this line to ~/.bashrc:  export PATH=\"$(dirname "$bin"):\$PATH\"" ;;
    esac
}

uninstall() {
    if [ -x "$bin" ] && daemon_runs; then
        echo "install.sh: a daemon runs; first end the workers and the daemon: swarm kill --all; swarm daemon stop" >&2
        exit 1
    fi
    if [ -f "$units/swarm.service" ]; then
        systemctl --user disable swarm >/dev/null 2>&1 || true
        rm -f "$units/swarm.service"
    fi
    remove_pages "$man"
    remove_pages "$share/man"
    rm -f "$bash_dir/swarm" "$fish_dir/swarm.fish" "$zsh_own/_swarm"
    found=$(zsh_dir)
    [ -z "$found" ] || rm -f "$found/_swarm"
    if [ -e "$bin" ]; then
        cargo uninstall swarm 2>/dev/null || rm -f "$bin"
    fi
    echo "removed $bin, its man pages and completions"
    echo "kept ${SWARM_DIR:-$HOME/.swarm} (workers, logs) and ${XDG_CONFIG_HOME:-$HOME/.config}/swarm (settings)"
}

root=${CARGO_INSTALL_ROOT:-${CARGO_HOME:-$HOME/.cargo}}
bin=$root/bin/swarm
share=${XDG_DATA_HOME:-$HOME/.local/share}
# For each directory bin in PATH, man searches share/man beside it.
man=$root/share/man
bash_dir=$share/bash-completion/completions
fish_dir=$share/fish/vendor_completions.d
zsh_own=$share/zsh/site-functions
units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user

case ${1:-} in
    "" | --unit) ;;
    --uninstall)
        uninstall
        exit 0
        ;;
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

zsh_dir=$(zsh_dir)
zsh_dir=${zsh_dir:-$zsh_own}
mkdir -p "$man/man1" "$man/man5" "$man/man7" "$bash_dir" "$zsh_dir" "$fish_dir"
remove_pages "$man"
# An earlier version put the pages there.
remove_pages "$share/man"
cp man/*.1 "$man/man1/"
cp man/*.5 "$man/man5/"
cp man/*.7 "$man/man7/"
"$bin" completions bash >"$bash_dir/swarm"
"$bin" completions zsh >"$zsh_dir/_swarm"
"$bin" completions fish >"$fish_dir/swarm.fish"

if [ "${1:-}" = --unit ]; then
    mkdir -p "$units"
    sed "s|^ExecStart=[^ ]*|ExecStart=$bin|" scripts/swarm.service >"$units/swarm.service"
    echo "installed $units/swarm.service; to use it: systemctl --user enable --now swarm"
fi

echo "installed $("$bin" --version) in $bin"
case ":$PATH:" in
    *":$(dirname "$bin"):"*) ;;
    *) say_path ;;
esac
if [ "$zsh_dir" = "$zsh_own" ] && command -v zsh >/dev/null 2>&1; then
    echo "for completion in zsh, add this line to ~/.zshrc, before compinit:  fpath=('$zsh_own' \$fpath)"
fi
if daemon_runs; then
    echo "a daemon runs; to replace it by the new version without pausing anything:  swarm daemon restart"
fi
