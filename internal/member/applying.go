package member

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/applier"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/expiry"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/snapshots"
	"github.com/quorate/quorate/internal/upkeep"
	"github.com/quorate/quorate/internal/watchdog"
)

// applying is the goroutine that applies what has committed.
type applying struct {
	queue   queue[applier.Work]
	applier *applier.Applier
}

// newApplying ties an applier to what it uses and to whom it tells what it does.
func newApplying(
	o *Options, dog *watchdog.Watchdog, stores *datadir.Stores, received *snapshots.Receiver, leases *expiry.Revoker,
	scrubber *upkeep.Scrubber, life *lifecycle, put func(...raft.Input), ports *applyPorts,
) *applying {
	task := dog.Watch("applying entries")
	a := &applying{applier: applier.New(applier.Options{
		Data: o.Data, Stores: stores, Received: received, Leases: leases, Scrubber: scrubber, Logger: o.Logger,
		Retainer: upkeep.NewRetainer(upkeep.RetainerOptions{
			Retention:  o.Retention,
			Compact:    func(to consensus.Index) { put(raft.Compact{Index: to}) },
			Background: life.background,
			Fail:       life.fail,
		}),
		Apply:   timed(o.Clock, o.Applied, ports.apply),
		Applied: ports.applied, Restored: ports.restored, Put: put, Background: life.background,
		Busy: func(busy bool) {
			if busy {
				task.Begin()
			} else {
				task.Idle()
			}
		},
	})}
	a.queue.init()
	return a
}

// timed makes apply tell how long it took; told may be nil.
func timed(
	clock env.Clock, told func(took time.Duration), apply func([]consensus.Entry) ([]kv.Result, error),
) func([]consensus.Entry) ([]kv.Result, error) {
	if told == nil {
		return apply
	}
	return func(batch []consensus.Entry) ([]kv.Result, error) {
		begun := clock.Now()
		results, err := apply(batch)
		if err == nil {
			told(clock.Now().Sub(begun))
		}
		return results, err
	}
}

// run applies what is queued until ctx ends.
func (a *applying) run(ctx context.Context) error {
	var spare []applier.Work
	for {
		select {
		case <-a.queue.signal:
		case <-ctx.Done():
			return nil
		}
		spare = a.queue.take(spare)
		if err := a.applier.Do(spare); err != nil {
			return err
		}
	}
}
