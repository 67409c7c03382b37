# Sourced by the other scripts, which stand in the checkout: makes .venv there and keeps it current. POSIX sh.

unset PYTHONDONTWRITEBYTECODE  # else each process would compile all modules again
say() { printf '%s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# The name of the first interpreter that is new enough. A name may stand in PATH and start nothing, as with pyenv.
find_python() {
    found="none is here"
    for name in python3.14 python3.13 python3.12 python3.11 python3 python; do
        version=$("$name" -c 'import platform; print(platform.python_version())' 2>/dev/null) || continue
        is_new_enough "$name" && printf '%s\n' "$name" && return
        found="only $version is here"
    done
    fail "Clade needs Python 3.11 or newer and $found: install one and start this again."
}

make_venv() {
    python=$(find_python) || exit 1
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$python has no venv module: on Debian and Ubuntu install the package python3-venv and start this again."
    "$python" -m venv --clear .venv >&2 || fail "No environment could be made in $PWD/.venv."
}

# An environment cannot be moved, since its programs name the directory that it was made in; pip comes into it last.
is_usable() { grep -qsF "$PWD/.venv" .venv/pyvenv.cfg && [ -x .venv/bin/pip ] && is_new_enough .venv/bin/python; }

# install EXTRA...: the checkout with these extras, in the versions of constraints.txt, unless .venv has them already.
# What installs and builds the checkout comes first, from the same file: Python's own pip may be old and slow, and an
# isolated build would take the newest setuptools.
# Python compiles the few modules that are imported then; pip would compile all of them first.
install() {
    [ -w . ] || fail "$PWD cannot be written to, and .venv and clade.db are kept there: use a checkout of your own."
    is_usable || make_venv
    wanted=$(cat pyproject.toml constraints.txt | cksum)
    stale=
    for extra in "$@"; do
        [ "$(cat ".venv/installed-$extra" 2>/dev/null)" = "$wanted" ] || stale=yes
    done
    [ -n "$stale" ] || return 0

    say "Installing into .venv; the first time takes a minute or two."
    extras=$(printf ',%s' "$@")
    {
        .venv/bin/python -m pip install --no-compile --constraint constraints.txt pip setuptools &&
            .venv/bin/python -m pip install --no-compile --constraint constraints.txt --no-build-isolation \
                --editable ".[${extras#,}]"
    } >.venv/install.log 2>&1 ||
        fail "What Clade needs could not be installed (is there a network?); pip's own words are in $PWD/.venv/install.log."
    for extra in "$@"; do printf '%s\n' "$wanted" >".venv/installed-$extra"; done
}
