#!/bin/sh
# Runs before the files of the package go. dpkg calls it with "remove" or "upgrade", rpm with the number of versions that are
# left: 0, or 1 in an upgrade, which stops nothing.
set -e

case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac

[ -d /run/systemd/system ] || exit 0
# The members that run now, and those that would run after the next boot.
systemctl disable --now quorate.service || true
systemctl stop 'quorate@*.service' || true
