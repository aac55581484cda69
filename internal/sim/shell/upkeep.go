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

const scrubPause = 200 * time.Millisecond

// cleaner makes the store durable, and removes what nobody needs from log and store.
type cleaner struct {
	*Life
	data      *datadir.Data
	scrubber  *upkeep.Scrubber
	scrubs    bool // there is more to delete
	reclaimer *upkeep.Reclaimer
	put       func(inputs ...raft.Input)
}

// flush makes the store durable, as an engine does when it likes, and lets the core forget what lies behind it: less than a
// member keeps, so that others need snapshots.
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

// scrub deletes, step by step, what compactions made invisible, and gives the disk back what was deleted.
func (u *cleaner) scrub() {
	u.scrubLater()
	u.reclaimer.Step(context.Background(), u.Clock())
	if !u.scrubber.Due() && !u.scrubs {
		return
	}
	done, err := u.scrubber.Step()
	if u.scrubs = !done; err != nil {
		u.Fail(err)
	}
}

func (u *cleaner) scrubLater() { u.After(scrubPause, u.scrub) }
