#!/bin/sh
# Runs after the files of the package are there. dpkg calls it with "configure" and the version before, if there was one; rpm
# with the number of versions that are installed then: 1, or 2 in an upgrade.
set -e

case "$1" in
configure) [ -n "$2" ] && upgrade=yes || upgrade=no ;;
1) upgrade=no ;;
2) upgrade=yes ;;
*) exit 0 ;;
esac

if ! getent passwd quorate >/dev/null; then
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers /usr/lib/sysusers.d/quorate.conf
	else
		useradd --system --user-group --home-dir /var/lib/quorate --no-create-home --shell /usr/sbin/nologin quorate
	fi
fi

# Without systemd, in a chroot or a container, there is nothing to tell.
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload

# A first installation starts nothing: a member that starts before it was configured founds a cluster of its own, whose data
# then keep it from joining the right one.
#
# An upgrade restarts nothing either. Package managers upgrade many machines at the same moment, and a cluster of which more
# than half restart at once answers nobody. Members are restarted one after the other, each when the one before follows again
# (docs/upgrade.md). Until then the process runs on from the file that it has open. Where something else sees to the order, the
# file below asks for the restart.
if [ "$upgrade" = yes ] && [ -e /etc/quorate/restart-on-upgrade ]; then
	systemctl try-restart quorate.service 'quorate@*.service'
fi
