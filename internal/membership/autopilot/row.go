package autopilot

import (
	"slices"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
)

const (
	// maxWaitingJobs bounds the jobs that have not ended.
	maxWaitingJobs = 32
	// keptJobs is how many ended ones are remembered.
	keptJobs = 50
	// maxNewJobBytes leaves room for what is added to a job while it runs.
	maxNewJobBytes = kv.MaxJobBytes / 2
)

// Row is a job and the version of its row.
type Row struct {
	membership.Job
	Version uint64
}

// Write is a new state of a job. It is written if the row has Version still; zero creates it. The rows in Forget go.
type Write struct {
	Job     membership.Job
	Version uint64
	Forget  []membership.JobID
}

// writeOf makes a Write of a job. Once the job has ended, the oldest of the ended ones are forgotten.
func writeOf(job *membership.Job, version uint64, rows []Row) *Write {
	w := &Write{Job: *job, Version: version}
	if job.State.Ended() {
		w.Forget = outdated(rows, job.ID)
	}
	return w
}

// outdated lists the ended jobs, oldest first, that are too many once one more has ended.
func outdated(rows []Row, ends membership.JobID) []membership.JobID {
	var ended []membership.JobID
	for i := range rows {
		if rows[i].State.Ended() && rows[i].ID != ends {
			ended = append(ended, rows[i].ID)
		}
	}
	return ended[:max(0, len(ended)+1-keptJobs)]
}

// Unfinished reports whether a job has not ended.
func Unfinished(rows []Row) bool {
	return slices.ContainsFunc(rows, func(row Row) bool { return !row.State.Ended() })
}

// Jobs drops the versions.
func Jobs(rows []Row) []membership.Job {
	jobs := make([]membership.Job, len(rows))
	for i := range rows {
		jobs[i] = rows[i].Job
	}
	return jobs
}

// known returns the job with an id, else an unfinished one that asks for the same.
func known(rows []Row, id membership.JobID, spec *membership.Spec) *membership.Job {
	for i := range rows {
		if rows[i].ID == id {
			return &rows[i].Job
		}
	}
	for i := range rows {
		if !rows[i].State.Ended() && !rows[i].CancelAsked && rows[i].Spec.Same(spec) {
			return &rows[i].Job
		}
	}
	return nil
}
