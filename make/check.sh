#!/bin/sh
# check.sh demo|test: looks at what the command needs. Each thing that is missing comes with the one
# line that mends it; then the exit status is 1. Changes nothing.

purpose=${1:?usage: check.sh demo|test}
. ./make/house.sh
missing=0

good() { printf '  ok       %s\n' "$1"; }
note() { printf '  note     %s\n' "$1"; }
bad() {
    printf '  MISSING  %s\n           mend: %s\n' "$1" "$2"
    missing=$((missing + 1))
}

# at_least VERSION MINIMUM: compares numbers between dots.
at_least() {
    awk -v have="$1" -v want="$2" 'BEGIN {
        n = split(want, w, "."); split(have, h, ".")
        for (i = 1; i <= n; i++) if (h[i] + 0 != w[i] + 0) exit !(h[i] + 0 > w[i] + 0)
    }'
}

# Whether make/packages.sh, the next step of make test, can install Debian packages.
apt_can() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

# install PACKAGE: the line that installs a Debian package, or what macOS has in its place.
install() {
    case $(uname)-$(id -u) in
        Darwin-*) echo "xcode-select --install" ;;
        *-0) echo "apt-get install -y $1" ;;
        *) echo "sudo apt-get install -y $1" ;;
    esac
}

# need COMMAND MINIMUM MEND: a program whose `--version` names a version with a dot in it.
need() {
    if ! command -v "$1" >/dev/null 2>&1; then
        case $purpose-$3 in
            test-*apt-get*) apt_can && note "$1 is missing: apt will be asked for it" && return ;;
        esac
        bad "$1 $2 or newer" "$3"
        return
    fi
    version=$("$1" --version 2>/dev/null | grep -o '[0-9][0-9]*\.[0-9.]*[0-9]' | head -n 1)
    if at_least "${version:-0}" "$2"; then
        good "$1 $version"
    else
        bad "$1 $2 or newer (this is ${version:-of unknown version})" "$3"
    fi
}

# The programs of the test cluster are compiled from Go modules. The oldest Go that does stands in
# their go.mod; the compiler is looked for where cargo xtask cluster build looks.
need_go() {
    wanted=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' xtask/cluster/kubernetes/go.mod)
    go=$(command -v go || echo /usr/local/go/bin/go)
    if [ ! -x "$go" ]; then
        bad "go $wanted or newer" "install it from https://go.dev/dl"
        return
    fi
    version=$(GOTOOLCHAIN=local "$go" env GOVERSION 2>/dev/null | grep -o '[0-9][0-9.]*[0-9]' | head -n 1)
    if at_least "${version:-0}" "$wanted"; then
        good "go $version"
    else
        bad "go $wanted or newer (this is ${version:-of unknown version})" "install it from https://go.dev/dl"
    fi
}

# need_gb NAME FREE_KB NEEDED_GB MEND
need_gb() {
    free_gb=$(awk -v kb="$2" 'BEGIN { printf "%.1f", kb / 1048576 }')
    if at_least "$free_gb" "$3"; then
        good "$1: $free_gb GB free, $3 GB needed"
    else
        bad "$1: $free_gb GB free, $3 GB needed" "$4"
    fi
}

need_rust() {
    if ! command -v rustup >/dev/null 2>&1; then
        bad "rustup" "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y && . ~/.cargo/env"
        return
    fi
    good "rustup"
    if ! has_toolchain "$rustup_home"; then
        note "Rust $rust_version is not installed: it will be fetched into target/home/rustup"
        return
    fi
    version=$(cargo --version 2>/dev/null | cut -d ' ' -f 2)
    if [ "$version" != "$rust_version" ]; then
        bad "cargo $rust_version ($(command -v cargo) is ${version:-no cargo of rustup})" \
            "unset RUSTUP_TOOLCHAIN; export PATH=\"\$HOME/.cargo/bin:\$PATH\""
        return
    fi
    good "Rust $version in $rustup_home"
    [ "$purpose" = test ] || return 0
    for tool in cargo-fmt cargo-clippy; do
        ls "$rustup_home/toolchains/$rust_version"-*/bin/$tool >/dev/null 2>&1 ||
            bad "$tool" "rustup component add --toolchain $rust_version rustfmt clippy"
    done
}

# Free memory in kB: what the kernel says is available, or less where a container has a limit.
free_memory_kb() {
    if [ -r /proc/meminfo ]; then
        free=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
        limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null)
        used=$(cat /sys/fs/cgroup/memory.current 2>/dev/null)
        awk -v free="$free" -v limit="$limit" -v used="$used" 'BEGIN {
            left = (limit - used) / 1024
            print (limit ~ /^[0-9]+$/ && left < free) ? left : free
        }'
    else
        # macOS gives memory back under pressure: its size is what counts.
        sysctl -n hw.memsize 2>/dev/null | awk '{ print $1 / 1024 }'
    fi
}

free_disk_kb() { df -Pk . | awk 'NR == 2 { print $4 }'; }

say "check for make $purpose"
need_rust
need cc 4.0 "$(install build-essential)"
case $purpose in
    demo)
        need_gb disk "$(free_disk_kb)" 3 "free some space, or clone onto a larger disk"
        need_gb memory "$(free_memory_kb)" 2 "close other programs, then try again"
        ;;
    test)
        need git 2.20 "$(install git)"
        # An example of the documents uses it.
        need curl 7.0 "$(install curl)"
        need_go
        # Rust's build and, where the test cluster is not built yet, Go's modules and its cache.
        need_gb disk "$(free_disk_kb)" 12 "free some space, or clone onto a larger disk"
        need_gb memory "$(free_memory_kb)" 4 "close other programs, then try again"
        ;;
esac

if [ "$missing" -gt 0 ]; then
    printf '\n%s missing: run the lines above, then make %s again\n' "$missing" "$purpose"
    exit 1
fi
