#!/bin/sh
# Debian packages that tests use beyond what the check demands. The only place that calls apt: it
# lists first, and asks unless CI=true or YES=1. Without root, or without apt, it names what is
# missing and the tests use what is there.

# One line per package: its name, and what uses it.
wanted() {
    cat <<'END'
build-essential  the C compiler and linker that Rust calls
git              lists the files that tidy reads
END
}

. ./make/house.sh
say "packages for make test"

if ! command -v apt-get >/dev/null 2>&1; then
    echo "  not a Debian system: tests use what is installed"
    exit 0
fi

missing=""
while read -r package reason; do
    status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)
    if [ "$status" = installed ]; then
        printf '  ok       %-16s %s\n' "$package" "$reason"
    else
        printf '  missing  %-16s %s\n' "$package" "$reason"
        missing="$missing $package"
    fi
done <<END
$(wanted)
END

[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
    echo "  not root: going on without. To install: sudo apt-get install$missing"
    exit 0
fi

if [ "${CI:-}" != true ] && [ "${YES:-}" != 1 ]; then
    if [ ! -t 0 ]; then
        echo "  nobody to ask: going on without. To install: YES=1 make test"
        exit 0
    fi
    printf '  install%s with apt? [y/N] ' "$missing"
    read -r answer
    case $answer in
        y | Y | yes) ;;
        *) echo "  going on without"; exit 0 ;;
    esac
fi

# Word splitting is wanted: one argument per package.
# shellcheck disable=SC2086
apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing ||
    echo "  apt failed: going on without$missing"
