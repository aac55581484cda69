package apply

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/kv"
)

// Job is one row of the table of jobs: work that the cluster has accepted and some member drives. What the body says
// is between those who write it.
type Job struct {
	ID      uint64
	Version uint64 // 1 when created, grows with each write
	Body    []byte
}

// Jobs returns the jobs, sorted by id. The list and the bodies must not be modified.
func (m *Machine) Jobs() []Job {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.jobs
}

func findJob(jobs []Job, id uint64) (int, bool) {
	return slices.BinarySearchFunc(jobs, id, func(j Job, id uint64) int { return cmp.Compare(j.ID, id) })
}

// writeJob creates or replaces a row, then deletes those to be pruned.
func (m *Machine) writeJob(op *kv.JobOp) error {
	if op.ID == 0 || len(op.Body) > kv.MaxJobBytes || slices.Contains(op.Prune, op.ID) {
		return kv.ErrBadCommand
	}
	jobs := slices.Clone(m.jobs)
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
	m.batch.w.Set(jobRow(op.ID), jobs[at].append(nil))
	for _, id := range op.Prune {
		if at, found := findJob(jobs, id); found {
			jobs = slices.Delete(jobs, at, at+1)
			m.batch.w.DeleteRaw(jobRow(id))
		}
	}
	m.mu.Lock()
	m.jobs = jobs
	m.mu.Unlock()
	return nil
}

func jobRow(id uint64) []byte { return binary.BigEndian.AppendUint64([]byte{tableState, rowJob}, id) }

func (j *Job) append(dst []byte) []byte {
	return append(binary.AppendUvarint(dst, j.Version), j.Body...)
}

func (m *Machine) loadJobs() error {
	return scan(m.engine, []byte{tableState, rowJob}, func(rest, value []byte) error {
		version, n := binary.Uvarint(value)
		if n <= 0 || len(rest) != 8 {
			return fmt.Errorf("%w: job %x", ErrCorruptRow, rest)
		}
		m.jobs = append(m.jobs, Job{ID: binary.BigEndian.Uint64(rest), Version: version, Body: bytes.Clone(value[n:])})
		return nil
	})
}
