package datadir

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Errors of a data directory.
var (
	// ErrDamaged means that a part is missing, or does not fit the others.
	ErrDamaged = errors.New("this data directory is damaged")
	// ErrMixed means that store, log and boots file are of different directories, members or clusters.
	ErrMixed = errors.New("the parts of this data directory do not belong together")
	// ErrRolledBack means that a part is older than the others show: it was put back from a copy.
	ErrRolledBack = errors.New("a part of this data directory is older than the rest. A member that forgot what it " +
		"acknowledged must not vote: if --wal-dir or --data-dir names a copy, correct it, else replace this member")
	// ErrSwitch means that CURRENT may name the old or the new store: only the next start can know.
	ErrSwitch = errors.New("datadir: the switch to a snapshot failed half way")
	// ErrStopped means that the store is closed because the member is shutting down.
	ErrStopped = errors.New("member: stopped")
	// ErrStoreEnded ends long work on a store that is being closed or replaced.
	ErrStoreEnded = errors.New("member: the store is being closed or replaced by a snapshot: try again")
)

// Damaged reports whether err says that a data directory is damaged, incomplete or too old for its member to run on it.
// The member must be replaced: a single file that is put back from a copy may hide what it has acknowledged since.
func Damaged(err error) bool {
	for _, damage := range []error{
		ErrDamaged, ErrRolledBack, wal.ErrCorrupt, wal.ErrNoLog, snapshot.ErrStoreMissing, snapshot.ErrCorrupt,
		engine.ErrCorrupt, apply.ErrCorruptRow, mvcc.ErrCorruptRow,
	} {
		if errors.Is(err, damage) {
			return true
		}
	}
	return false
}

// ErrNewerBuild means that a later build wrote the directory. It says nothing about damage: see Damaged.
var ErrNewerBuild = level.Later("this data directory was written by a later build, in a form that this build does not read. " +
	"Nothing is damaged and nothing was changed: start this member with that build, or a later one")

// newerBuild makes an error that says that a later build wrote something one that says what to do. It returns others unchanged.
func newerBuild(err error) error {
	if !errors.Is(err, level.ErrLater) || errors.Is(err, ErrNewerBuild) {
		return err
	}
	return fmt.Errorf("%w (%w)", ErrNewerBuild, err)
}
