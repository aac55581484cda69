#!/bin/sh
# Runs after the files of the package are gone. dpkg calls it with "remove", and with "purge" when it has deleted the
# configuration, too; rpm with the number of versions that are left.
set -e

# The data of a member are never deleted here, not by a purge either: they may be the last copy of what the cluster has
# acknowledged, and a purge of the wrong machine could not be taken back. The user stays as well, for the files are its.
case "$1" in
remove | purge | 0)
	[ ! -d /run/systemd/system ] || systemctl daemon-reload
	if [ -d /var/lib/quorate ]; then
		echo "quorate: data of members are left in /var/lib/quorate; delete them yourself if no cluster needs them" >&2
	fi
	;;
esac
exit 0
