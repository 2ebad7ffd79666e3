# Sourced by the other scripts, from the root of the clone: where Rust lives, and how steps look.

# The Rust version has one home: rust-toolchain.toml.
rust_version=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
home_in_clone=$PWD/target/home

# A shell that never sourced rustup's profile still finds it.
if ! command -v cargo >/dev/null 2>&1; then
    PATH=$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin
    export PATH
fi

# has_toolchain FOLDER: whether a rustup home holds the wanted Rust. Looking at files instead of
# asking rustup keeps rustup from installing or writing anything.
has_toolchain() {
    for cargo in "$1/toolchains/$rust_version"-*/bin/cargo; do
        [ -x "$cargo" ] && return 0
    done
    return 1
}

# Where the toolchain is, or will be: the user's own rustup home, else a folder in the clone.
rustup_home=${RUSTUP_HOME:-${HOME:-}/.rustup}
if ! has_toolchain "$rustup_home"; then
    rustup_home=$home_in_clone/rustup
    RUSTUP_HOME=$rustup_home
    export RUSTUP_HOME
fi

# say TEXT: the title of a step.
say() {
    printf '\n== %s\n' "$*"
}

# fetch_toolchain: installs the wanted Rust into the clone where the user has none.
fetch_toolchain() {
    has_toolchain "$rustup_home" && return 0
    say "Rust $rust_version into target/home/rustup"
    rustup toolchain install "$rust_version" --profile minimal \
        --component rustfmt --component clippy --no-self-update
}

# keep_cargo_in_clone: cargo's downloads go into the clone, but the user's own settings (a mirror,
# a proxy, a token) still hold. Where the clone lies in the home folder cargo finds them by itself.
keep_cargo_in_clone() {
    [ -n "${CARGO_HOME:-}" ] && return 0
    CARGO_HOME=$home_in_clone/cargo
    export CARGO_HOME
    mkdir -p "$CARGO_HOME"
    for file in config.toml config credentials.toml credentials; do
        rm -f "$CARGO_HOME/$file"
        case $file-$PWD/ in
            config*-"${HOME:-/nowhere}"/*) continue ;;
        esac
        [ -f "${HOME:-}/.cargo/$file" ] && ln -s "$HOME/.cargo/$file" "$CARGO_HOME/$file"
    done
    return 0
}
