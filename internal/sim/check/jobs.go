package check

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
)

// Jobs checks membership jobs by what is written in the log: one that has ended is written no more, so that nothing is done for
// it again; one that is done has done it; and there are fewer voters only if a job asks for that, which the replacement of one
// by another never does.
type Jobs struct {
	Alone bool // nobody else changes the voters
	Ended map[membership.State]uint64

	last   consensus.Index
	known  map[membership.JobID]membership.Job
	seen   map[consensus.ProposalID]bool // a second entry of a proposal writes nothing
	voters int
}

// Done counts the jobs that were done.
func (j *Jobs) Done() uint64 { return j.Ended[membership.StateDone] }

// applied takes note of the result of an entry, when the first member applies it.
func (j *Jobs) applied(s *Suite, e *consensus.Entry, result *kv.Result) {
	if e.Index <= j.last {
		return
	}
	j.last = e.Index
	config := s.CommittedConfig()
	if e.Kind == consensus.EntryConfig {
		j.judgeVoters(s, e, len(config.Voters))
	}
	if e.Kind != consensus.EntryCommand || !kv.IsJob(e.Payload) || result.Err != nil || j.seen[e.Proposal] {
		return
	}
	command, err := kv.DecodeCommand(e.Payload)
	if err != nil || command.Job == nil {
		return
	}
	job, err := membership.DecodeJob(command.Job.Body)
	if err != nil {
		s.report("job", "the row at %d: %v", e.Index, err)
		return
	}
	if before, known := j.known[job.ID]; known && before.State.Ended() {
		s.report("job", "job %v (%s) was %s and is written again at %d, as %s", job.ID, job.Title(), before.State, e.Index,
			job.State)
	}
	if j.known == nil {
		j.known, j.Ended = map[membership.JobID]membership.Job{}, map[membership.State]uint64{}
		j.seen = map[consensus.ProposalID]bool{}
	}
	j.seen[e.Proposal] = true
	j.known[job.ID] = job
	if job.State.Ended() {
		j.Ended[job.State]++
	}
	if job.State == membership.StateDone {
		j.judgeDone(s, &job, config)
	}
}

// judgeDone checks that the members are as a job wanted them.
func (j *Jobs) judgeDone(s *Suite, job *membership.Job, config *consensus.Config) {
	if !j.Alone {
		return
	}
	for _, id := range job.Spec.Remove {
		if config.Contains(id) {
			s.report("job", "job %v (%s) is done, and %v is a member", job.ID, job.Title(), id)
		}
	}
	in := slices.Clone(job.Spec.Promote)
	for _, n := range job.Spec.Add {
		if !n.Learner {
			in = append(in, n.ID)
		}
	}
	for _, id := range in {
		if !config.IsVoter(id) {
			s.report("job", "job %v (%s) is done, and %v does not vote", job.ID, job.Title(), id)
		}
	}
}

// judgeVoters checks that a configuration with fewer voters was asked for.
func (j *Jobs) judgeVoters(s *Suite, e *consensus.Entry, voters int) {
	before := j.voters
	j.voters = voters
	change, _, err := consensus.DecodeConfigChange(e.Payload)
	if !j.Alone || voters >= before || err != nil || change.Abort { // who turns back asks for what was there
		return
	}
	for _, job := range j.known {
		out := len(job.Spec.Remove) + len(job.Spec.Demote)
		if !job.State.Ended() && out > 0 && job.Spec.Kind != membership.KindReplace {
			return
		}
	}
	s.report("job", "the configuration at %d has %d voters after %d, and no job asks for fewer", e.Index, voters, before)
}
