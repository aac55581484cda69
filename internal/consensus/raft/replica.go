package raft

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/filter"
)

// New returns a replica that continues from the state on its disk. The errors are ErrOptions and ErrRestored.
func New(opts Options, restored Restored) (*Replica, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	r := &Replica{
		opts:    opts,
		configs: configs.New(opts.ID, opts.Storage, restored.Tombstones, opts.Dropped),
		elect:   election{rng: random{state: opts.Seed ^ uint64(opts.ID)*0x9e3779b97f4a7c15}, spread: 2 * opts.HeartbeatTicks},
	}
	r.fast = fast.New(opts.fastSettings(), &r.log, &r.configs)
	if err := r.restoreLog(&restored); err != nil {
		return nil, err
	}
	if restored.Hard.Term > filter.MaxNumber {
		return nil, fmt.Errorf("%w: term %d is beyond what elections reach", ErrRestored, restored.Hard.Term)
	}
	r.hard.restore(&restored.Hard, restored.Base.Position.Term, r.log.Commit())
	if last := r.log.LastPosition(); last.Term > r.hard.term {
		return nil, fmt.Errorf("%w: last entry %v, hard state of term %d", ErrRestored, last, r.hard.term)
	}
	r.restoreConfigs(&restored.Base)
	r.advanceConfigs()
	if len(restored.Records) > 0 && !r.fast.Enabled() {
		return nil, fmt.Errorf("%w: %d proposals are held, and nobody says what they touch", ErrRestored, len(restored.Records))
	}
	r.fast.Restore(restored.Revision, restored.Records)
	r.elect.removed = r.configs.IsTombstone(opts.ID)
	r.keepPromise(&restored.Hard)
	r.resetCampaign()
	r.out.Output = Output{} // events before the start are not reported
	return r, nil
}
