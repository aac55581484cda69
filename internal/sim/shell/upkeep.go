package shell

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/upkeep"
	"github.com/quorate/quorate/internal/sim/dice"
)

const compactPause = 200 * time.Millisecond

// cleaner makes the store durable, and removes from log and store what is not needed any more.
type cleaner struct {
	*Life
	data      *datadir.Data
	compactor *upkeep.Compactor
	compacts  bool // there is more to delete
	reclaimer *upkeep.Reclaimer
	put       func(inputs ...raft.Input)
}

// flush makes the store durable, as an engine does now and then, and lets the core compact its log, further than a member does,
// so that followers need snapshots.
func (u *cleaner) flush() {
	u.flushLater()
	if err := u.data.Engine.Flush(); err != nil {
		u.Fail(err)
		return
	}
	meta := u.data.Machine.SnapshotMeta()
	if durable, err := u.data.Machine.DurableApplied(); err != nil || durable != meta.Position {
		u.Suite.Report("recovery", fmt.Sprintf("applied is %v, after a flush %v is durable (%v)", meta.Position, durable, err))
	}
	if uint64(meta.Position.Index) <= u.Pace.Keep {
		return
	}
	u.put(raft.Compact{Index: meta.Position.Index - consensus.Index(u.Pace.Keep)})
}

func (u *cleaner) flushLater() { u.After(dice.Exponential(u.Rng, u.Pace.Flush), u.flush) }

// reclaimPace has bounds for stores as small as those of a simulated member.
var reclaimPace = upkeep.ReclaimPace{Bytes: 64 << 10, LowBytes: 1 << 10, Retry: time.Second}

// compact deletes compacted revisions step by step, and returns the space of deleted keys to the disk.
func (u *cleaner) compact() {
	u.compactLater()
	u.reclaimer.Step(context.Background(), u.Clock())
	if !u.compactor.Due() && !u.compacts {
		return
	}
	done, err := u.compactor.Step()
	if u.compacts = !done; err != nil {
		u.Fail(err)
	}
}

func (u *cleaner) compactLater() { u.After(compactPause, u.compact) }
