package member

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
)

// jobTable reads the cluster's jobs as they are applied here.
type jobTable struct {
	machine    func() (*apply.Machine, func())
	logger     *slog.Logger
	changed    broadcast.Signal
	unreadable sync.Once
}

// applied wakes the goroutines that wait for a change of the jobs, once entries are applied.
func (t *jobTable) applied(entries []consensus.Entry) {
	for i := range entries {
		if entries[i].Kind == consensus.EntryCommand && kv.IsJob(entries[i].Payload) {
			t.changed.Send()
			return
		}
	}
}

// rows returns the jobs, oldest first.
func (t *jobTable) rows() []autopilot.Row {
	machine, release := t.machine()
	stored := machine.Jobs()
	release()
	rows, err := JobRows(stored)
	if err != nil {
		t.unreadable.Do(func() { t.logger.Error("cannot read a membership job", "err", err) })
	}
	return rows
}

// JobRows decodes the state machine's rows of jobs, oldest first. It leaves out rows that it cannot decode, and returns the
// last such error.
func JobRows(stored []apply.Job) (rows []autopilot.Row, unreadable error) {
	rows = make([]autopilot.Row, 0, len(stored))
	for i := range stored {
		job, err := membership.DecodeJob(stored[i].Body)
		if err == nil && job.ID != membership.JobID(stored[i].ID) {
			err = fmt.Errorf("it says that it is job %v", job.ID)
		}
		if err != nil {
			unreadable = fmt.Errorf("job %v: %w", membership.JobID(stored[i].ID), err)
			continue
		}
		rows = append(rows, autopilot.Row{Job: job, Version: stored[i].Version})
	}
	slices.SortFunc(rows, func(a, b autopilot.Row) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	return rows, unreadable
}

// JobOp returns the command that writes a row.
func JobOp(w *autopilot.Write) *kv.JobOp {
	op := &kv.JobOp{ID: uint64(w.Job.ID), Version: w.Version, Body: w.Job.Encode()}
	for _, id := range w.Forget {
		op.Prune = append(op.Prune, uint64(id))
	}
	return op
}
