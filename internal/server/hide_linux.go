package server

import (
	"log/slog"

	"golang.org/x/sys/unix"
)

// hideMemory keeps the keys in memory out of core dumps, and from other processes of this user.
func hideMemory(logger *slog.Logger) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		logger.Warn("could not keep keys out of core dumps", "err", err)
	}
}
