package shell

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/sim/dice"
)

const scrubPause = 200 * time.Millisecond

// upkeep makes the store durable, and removes what nobody needs from log and store.
type upkeep struct {
	*Life
	data *datadir.Data
	put  func(inputs ...raft.Input)
}

// flush makes the store durable and lets the core forget what lies well behind it.
func (u *upkeep) flush() {
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

func (u *upkeep) flushLater() { u.After(dice.Exponential(u.Rng, u.Pace.Flush), u.flush) }

// scrub deletes, step by step, what compactions made invisible.
func (u *upkeep) scrub() {
	u.scrubLater()
	store := u.data.Machine.Store()
	if store.CompactedTo() >= store.CompactRevision() {
		return
	}
	if _, err := store.CompactStep(1 + u.Rng.IntN(200)); err != nil {
		u.Fail(err)
	}
}

func (u *upkeep) scrubLater() { u.After(scrubPause, u.scrub) }
