#!/bin/sh
# PostgreSQL for tests, unpacked into the clone: installed as a package it would start a service.
# Prints the folder of its programs, or nothing where it can neither be found nor fetched.
set -eu

# newest FOLDER: the programs of the newest version below it.
newest() {
    ls -d "$1"/usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1
}

if command -v initdb >/dev/null 2>&1; then
    dirname "$(command -v initdb)"
    exit 0
fi
found=$(newest "")
if [ -z "$found" ]; then
    folder=$PWD/target/debian/postgresql
    if ! ls "$folder"/usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
        command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || exit 0
        rm -rf "$folder" && mkdir -p "$folder/package"
        # A machine that never updated its lists knows no package; only root may update them.
        apt-cache show postgresql >/dev/null 2>&1 || [ "$(id -u)" != 0 ] || apt-get update -qq >&2 || true
        # What an installation would add: the server, and the libraries that are not there.
        wanted=$(apt-get install -s --no-install-recommends postgresql 2>/dev/null |
            awk '$1 == "Inst" { print $2 }')
        # shellcheck disable=SC2086  # one argument for each package
        [ -n "$wanted" ] && (cd "$folder/package" && apt-get download -qq $wanted) >&2 ||
            { echo "postgresql cannot be fetched: tests against it are skipped" >&2; exit 0; }
        for package in "$folder"/package/*.deb; do
            dpkg-deb -x "$package" "$folder"
        done
        rm -rf "$folder/package"
    fi
    found=$(newest "$folder")
fi
echo "$found"
