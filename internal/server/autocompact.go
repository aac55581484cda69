package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/kv"
)

const (
	// revisionCheck is how often etcd, and so we, look whether the kept number of revisions is exceeded.
	revisionCheck = 5 * time.Minute
	// maxPeriodStep is the longest time between two periodic compactions.
	maxPeriodStep = time.Hour
	samplesPerRun = 10
)

// autoCompactor decides when to compact and how far. It sees time and revisions, and holds no clock.
//
// Periodic: revisions are sampled ten times per step (the period, at most an hour); once per step everything older than
// the period is compacted. By revisions: every five minutes all but the newest N.
type autoCompactor struct {
	retention config.Retention
	samples   []sample // oldest first
	last      kv.Revision
	due       time.Time
}

type sample struct {
	at       time.Time
	revision kv.Revision
}

// interval is how often observe should be called.
func (a *autoCompactor) interval() time.Duration {
	if a.retention.Period > 0 {
		return max(a.step()/samplesPerRun, time.Millisecond)
	}
	return revisionCheck
}

func (a *autoCompactor) step() time.Duration { return min(a.retention.Period, maxPeriodStep) }

// observe notes the current revision and returns the one to compact at, or zero. A member that does not lead only notes, so
// that it compacts as soon as it leads if no member did for a step.
func (a *autoCompactor) observe(now time.Time, revision kv.Revision, leads bool) kv.Revision {
	target := revision - kv.Revision(a.retention.Revisions)
	if a.retention.Period > 0 {
		target = a.before(now, revision, leads)
	}
	if !leads || target <= a.last || target <= 0 {
		return 0
	}
	return target
}

// before returns the newest sampled revision that is at least a period old, if a step is over.
func (a *autoCompactor) before(now time.Time, revision kv.Revision, leads bool) kv.Revision {
	if a.due.IsZero() {
		a.due = now.Add(a.retention.Period)
	}
	a.samples = append(a.samples, sample{now, revision})
	n := 0
	for n+1 < len(a.samples) && now.Sub(a.samples[n+1].at) >= a.retention.Period {
		n++
	}
	a.samples = a.samples[n:]
	if !leads || now.Before(a.due) || now.Sub(a.samples[0].at) < a.retention.Period {
		return 0
	}
	a.due = now.Add(a.step())
	return a.samples[0].revision
}

// words are etcd's for the log.
func (a *autoCompactor) words() (mode string, kept slog.Attr) {
	if a.retention.Period > 0 {
		return "periodic", slog.Duration("compact-period", a.retention.Period)
	}
	return "revision", slog.Int64("revision-compaction-retention", a.retention.Revisions)
}

// failed makes the next observation try again.
func (a *autoCompactor) failed(now time.Time) { a.due = now }

// compacted notes that a compaction succeeded.
func (a *autoCompactor) compacted(revision kv.Revision) { a.last = max(a.last, revision) }

// compactHistory is the goroutine that compacts while this member leads. Followers only sample.
func (s *Server) compactHistory(a *autoCompactor) {
	ticker := time.NewTicker(a.interval())
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.ctx.Done():
			return
		}
		machine, release := s.member.Machine()
		revision := machine.Store().Revision()
		release()
		if target := a.observe(time.Now(), revision, s.member.Leader() == s.member.ID()); target != 0 {
			s.compactAt(a, target)
		}
	}
}

func (s *Server) compactAt(a *autoCompactor, target kv.Revision) {
	begun := time.Now()
	mode, kept := a.words()
	about := []any{"revision", int64(target), kept}
	s.logger.Info("starting auto "+mode+" compaction", about...)
	result, err := s.member.Propose(s.ctx, &kv.Command{
		Compact: &kv.CompactOp{Revision: target}, By: s.byMember(),
	})
	err = errors.Join(err, result.Err)
	switch {
	case err == nil || errors.Is(err, kv.ErrCompacted):
		a.compacted(target)
		s.logger.Info("completed auto "+mode+" compaction", append(about, "took", time.Since(begun))...)
	case s.ctx.Err() == nil:
		a.failed(begun)
		s.logger.Warn("failed auto "+mode+" compaction", append(about, "retry-interval", a.interval(), "err", err)...)
	}
}

// startCompactor begins automatic compaction if it is configured.
func (s *Server) startCompactor(context.Context, Options) error {
	retention, err := s.cfg.AutoCompaction()
	if err != nil || retention == (config.Retention{}) {
		return err
	}
	a := &autoCompactor{retention: retention}
	s.wg.Go(func() { s.compactHistory(a) })
	return nil
}

func (s *Server) byMember() auth.Credentials {
	machine, release := s.member.Machine()
	defer release()
	return machine.Users().ByMember()
}
