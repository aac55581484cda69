package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/recovery"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/keysource"
)

// Stopped is the data of a member that does not run, locked so that it cannot be started meanwhile.
type Stopped struct {
	// Unwritable says that the data are on a disk that is mounted read-only.
	Unwritable bool

	options datadir.Options
	lock    *dirLock
}

// OpenToRead is OpenStopped for a caller that only inspects: the data may be on a disk that is mounted read-only.
func OpenToRead(ctx context.Context, dataDir, walDir string, keys keysource.Source) (*Stopped, error) {
	s, err := OpenStopped(ctx, dataDir, walDir, keys)
	if !errors.Is(err, syscall.EROFS) {
		return s, err
	}
	s.Unwritable = true
	err = s.open(ctx, unwritableFS{files.Disk}, dataDir, keys)
	return s, err
}

// OpenStopped locks the data of a member, and opens its keys if it is encrypted. Nothing is created: a directory that is not
// one is refused.
func OpenStopped(ctx context.Context, dataDir, walDir string, keys keysource.Source) (*Stopped, error) {
	stat, err := os.Stat(dataDir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--data-dir %s: %w", dataDir, bare(err))
	case !stat.IsDir():
		return nil, fmt.Errorf("--data-dir %s is not a directory", dataDir)
	}
	s := &Stopped{options: datadir.Options{
		FS: files.Disk, Dir: filepath.Join(dataDir, memberDir), WALDir: walDir, Logger: slog.New(slog.DiscardHandler),
	}}
	exists, err := datadir.Exists(s.options)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, fmt.Errorf("--data-dir %s holds no member's data: give the directory that the member was started with",
			dataDir)
	}
	if err := refuseOtherUser(dataDir, stat); err != nil {
		return nil, err
	}
	return s, s.open(ctx, files.Disk, dataDir, keys)
}

// open locks the data on a file system, and opens their keys.
func (s *Stopped) open(ctx context.Context, fs env.FS, dataDir string, keys keysource.Source) (err error) {
	if s.lock, err = takeLock(fs, dataDir); err != nil {
		return err
	}
	if !keys.IsZero() {
		hideMemory(s.options.Logger)
	}
	d, err := openDisk(ctx, fs, dataDir, keys)
	if err != nil {
		return errors.Join(err, s.lock.release())
	}
	d.lay(&s.options)
	return nil
}

// Inspect reads the data and changes nothing.
func (s *Stopped) Inspect() (*recovery.Survivor, error) { return recovery.Inspect(readOnly(s.options)) }

// Recover makes the member the only voter, as planned.
func (s *Stopped) Recover(r *recovery.Plan) error { return r.Write(readOnly(s.options)) }

// SetAddresses records where the operator says that members are, and touches nothing else.
func (s *Stopped) SetAddresses(told []datadir.Address) error {
	return datadir.WriteAddresses(s.options, told)
}

// AdvanceLearner brings a learner that stays, inspected as learner, into the epoch that the recovery begins.
func (s *Stopped) AdvanceLearner(r *recovery.Plan, learner *recovery.Survivor) error {
	return r.AdvanceLearner(readOnly(s.options), learner)
}

// Close lets the data go.
func (s *Stopped) Close() error { return s.lock.release() }

func readOnly(options datadir.Options) datadir.Options {
	options.OpenEngine = func(dir string) (engine.Engine, error) {
		return engine.Open(engine.Options{FS: options.FS, Dir: dir, ReadOnly: true})
	}
	return options
}

func (s *Server) refuseForce() error {
	return fmt.Errorf("--force-new-cluster keeps the contents of a member, but --data-dir %s holds none: correct "+
		"--data-dir, or drop the flag to found a new cluster", s.cfg.Storage.DataDir)
}

// forceNewCluster makes this member the only one of its cluster, as `quorate recover` does, the first time that the data in
// options is started with the flag. A flag that was forgotten in a unit would else force again: at a power loss the first
// member that boots finds no process that listens. It is refused while other voters answer. That is a use of it, too: else the
// unit's next attempt, when they do not answer for a moment, would remove them.
func (s *Server) forceNewCluster(ctx context.Context, options datadir.Options) error {
	survivor, err := recovery.Inspect(readOnly(options))
	if err != nil {
		return err
	}
	before := survivor.Identity.Epoch
	if used, err := datadir.Forced(options, before); err != nil {
		return fmt.Errorf("--force-new-cluster: %w", err)
	} else if used {
		s.logger.Warn("--force-new-cluster was used with this data directory before, and does nothing: it works once. This "+
			"is a start as any other; remove the flag. If a majority is lost for ever once more, stop this member and use "+
			"`quorate recover`", "data-dir", s.cfg.Storage.DataDir)
		return nil
	}
	plan, err := survivor.Plan(nil)
	if errors.Is(err, recovery.ErrOnlyVoter) {
		s.logger.Warn("--force-new-cluster has no effect: this member is the only one; remove the flag")
		return datadir.WriteForced(options, before)
	}
	if err != nil {
		return fmt.Errorf("--force-new-cluster: %w", err)
	}
	found := survivor.FindVoters(ctx, survivor.FinderOver(s.asking()), nil)
	if err := survivor.CheckVoters(found); err != nil {
		err = fmt.Errorf("--force-new-cluster: %w; nothing was changed. The flag will not be obeyed again with this data "+
			"directory: the next start is one as any other. To go on without the others for ever use `quorate recover`, which "+
			"lets you name those that are gone", err)
		return errors.Join(err, datadir.WriteForced(options, before))
	}
	if err := recovery.CheckEmpty(found); err != nil {
		// They would lose nothing by being removed, so a later attempt that does not meet them does no harm.
		return fmt.Errorf("--force-new-cluster: %w; nothing was changed, and the flag still counts. If these members run "+
			"elsewhere with their data, remove the flag. If their data are lost for ever, stop the processes without data "+
			"first, then start this member again", err)
	}
	if err := datadir.WriteForced(options, plan.Epoch); err != nil {
		return fmt.Errorf("--force-new-cluster: %w", err)
	}
	if err := plan.Write(readOnly(options)); err != nil {
		return fmt.Errorf("--force-new-cluster: %w", err)
	}
	var removed []string
	for _, id := range plan.Tombs {
		removed = append(removed, survivor.NameOf(id))
	}
	s.logger.Warn("forced a new cluster: this member is the only one, all others are removed for ever and must not be "+
		"started again; what they acknowledged beyond this log is lost; remove --force-new-cluster now",
		"member", survivor.Identity.Member.String(), "epoch-before", plan.Before.String(), "epoch", plan.Epoch.String(),
		"removed", removed, "last", survivor.Last.String(),
		"kept-uncommitted", uint64(survivor.Last.Index-survivor.Commit))
	return nil
}
