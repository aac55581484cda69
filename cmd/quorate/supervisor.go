package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// tellSupervisor tells systemd, if it has started this process with Type=notify, that the process serves.
func tellSupervisor(logger *slog.Logger) {
	if told, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		logger.Warn("could not tell systemd that this member serves", "err", err)
	} else if told {
		logger.Info("told systemd that this member serves")
	}
}

// tellWatchdog tells systemd from now on that the member makes progress, if the unit has WatchdogSec. The function that it
// returns ends that. It does not wait: a supervisor that reads nothing any more must not keep the process from ending.
func tellWatchdog(stalled func(limit time.Duration) error, logger *slog.Logger) (end func()) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		logger.Warn("cannot read the settings of systemd's watchdog, which will end this process", "err", err)
	}
	if interval <= 0 {
		return func() {}
	}
	logger.Info("systemd watches whether this member makes progress", "interval", interval.String())
	ctx, cancel := context.WithCancel(context.Background())
	go reportProgress(ctx, interval, stalled, logger, func(state string) error {
		_, err := daemon.SdNotify(false, state)
		return err
	})
	return cancel
}

// reportProgress tells systemd four times in an interval that the process lives, as long as no important goroutine of the
// member has been at one piece of work for half of it. A timer that only showed that the process runs would hide the very
// fault that the watchdog is for: a member whose loop hangs keeps its ports open and answers nothing. Systemd ends the
// process an interval after the last report, so that a piece of work may take at least one interval, and at most one and a
// half.
func reportProgress(
	ctx context.Context, interval time.Duration, stalled func(limit time.Duration) error, logger *slog.Logger,
	notify func(state string) error,
) {
	ticks := time.NewTicker(max(interval/4, time.Millisecond))
	defer ticks.Stop()
	silent := false
	for {
		why := stalled(interval / 2)
		if why == nil {
			if err := notify(daemon.SdNotifyWatchdog); err != nil {
				logger.Warn("could not tell systemd that this member makes progress", "err", err)
			}
		} else if !silent {
			logger.Error("this member makes no progress: systemd will end it unless that changes", "err", why)
		}
		silent = why != nil
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}
