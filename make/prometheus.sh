#!/bin/sh
# Prometheus for tests, unpacked into the clone: installed as a package it would start a service.
# Prints the folder of its programs, or nothing where it can neither be found nor fetched.
set -eu

folder=$PWD/target/debian/prometheus
if command -v prometheus >/dev/null 2>&1 && command -v promtool >/dev/null 2>&1; then
    dirname "$(command -v prometheus)"
    exit 0
fi
if [ ! -x "$folder/usr/bin/prometheus" ]; then
    command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || exit 0
    rm -rf "$folder" && mkdir -p "$folder/package"
    # A machine that never updated its lists knows no package; only root may update them.
    (cd "$folder/package" && apt-get download -qq prometheus) >&2 2>/dev/null ||
        { [ "$(id -u)" = 0 ] && apt-get update -qq >&2 &&
            (cd "$folder/package" && apt-get download -qq prometheus) >&2; } ||
        { echo "prometheus cannot be fetched: tests against it are skipped" >&2; exit 0; }
    dpkg-deb -x "$folder"/package/prometheus_*.deb "$folder"
    rm -rf "$folder/package"
fi
echo "$folder/usr/bin"
