package apply

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Job is one row of the table of jobs: work that the cluster has accepted and some member drives. The state machine does not
// interpret the body.
type Job struct {
	ID      uint64
	Version uint64 // 1 when created, grows with each write
	Body    []byte
}

// jobTable holds the jobs. The goroutine that calls Apply changes it; any goroutine may read it.
type jobTable struct {
	mu   sync.RWMutex
	jobs []Job // sorted by id; replaced, not changed
}

func (t *jobTable) load(eng engine.Engine) error {
	return scan(eng, []byte{tableState, rowJob}, func(rest, value []byte) error {
		version, n := binary.Uvarint(value)
		if n <= 0 || len(rest) != 8 {
			return fmt.Errorf("%w: job %x", ErrCorruptRow, rest)
		}
		t.jobs = append(t.jobs, Job{ID: binary.BigEndian.Uint64(rest), Version: version, Body: bytes.Clone(value[n:])})
		return nil
	})
}

// list returns the jobs. The list and the bodies must not be modified.
func (t *jobTable) list() []Job {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.jobs
}

func findJob(jobs []Job, id uint64) (int, bool) {
	return slices.BinarySearchFunc(jobs, id, func(j Job, id uint64) int { return cmp.Compare(j.ID, id) })
}

// write creates or replaces a row, then deletes the rows to be pruned. A write at another version than the row's is rejected.
func (t *jobTable) write(w rowWriter, op *kv.JobOp) error {
	if op.ID == 0 || len(op.Body) > kv.MaxJobBytes || slices.Contains(op.Prune, op.ID) {
		return kv.ErrBadCommand
	}
	jobs := slices.Clone(t.jobs)
	at, found := findJob(jobs, op.ID)
	switch {
	case op.Version == 0 && found:
		return kv.ErrJobExists
	case op.Version != 0 && (!found || jobs[at].Version != op.Version):
		return kv.ErrJobConflict
	case !found:
		jobs = slices.Insert(jobs, at, Job{})
	}
	// The body aliases the entry, which lives no longer than its batch.
	jobs[at] = Job{ID: op.ID, Version: op.Version + 1, Body: bytes.Clone(op.Body)}
	w.Set(jobRow(op.ID), jobs[at].append(nil))
	for _, id := range op.Prune {
		if at, found := findJob(jobs, id); found {
			jobs = slices.Delete(jobs, at, at+1)
			w.DeleteRaw(jobRow(id))
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.jobs = jobs
	return nil
}

func jobRow(id uint64) []byte { return binary.BigEndian.AppendUint64([]byte{tableState, rowJob}, id) }

func (j *Job) append(dst []byte) []byte {
	return append(binary.AppendUvarint(dst, j.Version), j.Body...)
}
