#!/bin/sh
# Installs pinned versions of the agent CLIs for the e2e scripts, and prints the PATH entries of their programs.
#
#   install.sh [PROGRAM...]     claude, codex, opencode, gemini, qwen, aider [default: all]
#
# AGENTS is the directory for the CLIs, one subdirectory each [default: ~/.cache/swarm-agents]. AGENTS_PATH lists directories
# (as in PATH) to search first; programs found there are used as they are. A CLI is installed if its directory has the file
# `complete`, which this script writes after the program has printed the pinned version. An interrupted installation starts
# again and uses the caches of npm and pip in AGENTS. Requires npm, and for aider python3 with venv. Exits with 1 if a CLI is
# still missing at the end; the others are installed.
set -eu

table='claude @anthropic-ai/claude-code 2.1.332
codex @openai/codex 0.171.0
opencode opencode-ai 1.18.33
gemini @google/gemini-cli 0.61.0
qwen @qwen-code/qwen-code 0.15.10
aider aider-chat 0.86.2'
[ $# -gt 0 ] || set -- claude codex opencode gemini qwen aider

root=${AGENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/swarm-agents}
mkdir -p "$root"
root=$(cd "$root" && pwd)
# True when a program prints this version. Its settings are not the user's.
prints_version() { # PROGRAM-PATH VERSION
    mkdir -p "$root/home"
    HOME=$root/home timeout -k 5 300 "$1" --version </dev/null 2>/dev/null | grep -qF "$2"
}

install_package() { # FOLDER PACKAGE VERSION
    if [ "$2" = aider-chat ]; then
        python3 -m venv "$1" >&2 && "$1/bin/pip" install --quiet --disable-pip-version-check --retries 1 \
            --cache-dir "$root/pip-cache" "$2==$3" >&2
    else
        npm install --prefix "$1" --cache "$root/npm-cache" --no-audit --no-fund --no-update-notifier \
            --loglevel error "$2@$3" >&2 && mkdir "$1/bin" && ln -s "$1"/node_modules/.bin/* "$1/bin/"
    fi
}

# Without the registry, each attempt would take minutes.
npm_is_there() {
    [ -n "${npm_answers:-}" ] || {
        npm_answers=no
        npm ping --fetch-retries 0 --fetch-timeout 20000 --loglevel silent >/dev/null 2>&1 && npm_answers=yes
    }
    [ "$npm_answers" = yes ]
}

install_one() { # PROGRAM PACKAGE VERSION
    folder=$root/$1-$3
    [ ! -f "$folder/complete" ] || return 0
    # Two installations at once would remove each other's unfinished folders.
    exec 9>"$root/lock"
    flock 9
    [ ! -f "$folder/complete" ] || return 0
    if [ "$2" != aider-chat ] && ! npm_is_there; then
        echo "install.sh: $2 $3 is not installed: npm cannot reach its registry" >&2
        return 1
    fi
    for try in 1 2 3; do
        echo "install.sh: installing $2 $3 in $folder (attempt $try)" >&2
        rm -rf "$folder"
        mkdir "$folder"
        if install_package "$folder" "$2" "$3" && prints_version "$folder/bin/$1" "$3"; then
            : >"$folder/complete"
            return 0
        fi
    done
    rm -rf "$folder"
    echo "install.sh: $2 $3 could not be installed" >&2
    return 1
}

# The folder in AGENTS_PATH that holds this program.
found_in_path() { # PROGRAM
    (
        IFS=:
        for dir in ${AGENTS_PATH:-}; do
            if [ -x "$dir/$1" ]; then
                echo "$dir"
                exit 0
            fi
        done
        exit 1
    )
}

missing=0
path=
for program; do
    line=$(printf '%s\n' "$table" | grep "^$program ") || {
        echo "install.sh: unknown program '$program'" >&2
        exit 2
    }
    version=${line##* }
    package=${line#* }
    package=${package% *}
    if ! dir=$(found_in_path "$program"); then
        dir=$root/$program-$version/bin
        install_one "$program" "$package" "$version" || {
            missing=1
            continue
        }
    fi
    path=$path:$dir
done
[ $missing = 1 ] || rm -rf "$root/npm-cache" "$root/pip-cache"
printf '%s\n' "${path#:}"
exit $missing
