package check

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
)

// Jobs checks membership jobs by their rows in the log: an ended job is not written again, so that no member acts for it again;
// a job that is done has changed the members as it says; and the number of voters falls only if an operator asks for that,
// which a replacement never does. A newcomer has its time to start, and automatic care has its budget, whatever clocks show.
type Jobs struct {
	Ended map[membership.State]uint64
	// Drift is how much faster than true time a member's clock may run, and MaxPerHour is how many jobs automatic care may
	// begin within an hour; zero: any number.
	Drift      float64
	MaxPerHour int

	began  map[membership.JobID]time.Duration // true time at which it was known to run
	cared  []time.Duration                    // times at which jobs of automatic care were known
	last   consensus.Index
	known  map[membership.JobID]membership.Job
	seen   map[consensus.ProposalID]bool // a second entry of a proposal writes nothing
	voters []consensus.MemberID
	asked  map[consensus.MemberID]bool // members named in changes without a job
}

// Done counts the jobs that were done.
func (j *Jobs) Done() uint64 { return j.Ended[membership.StateDone] }

// applied checks the result of an entry, when the first member applies it.
func (j *Jobs) applied(s *Suite, e *consensus.Entry, result *kv.Result) {
	if e.Index <= j.last {
		return
	}
	j.last = e.Index
	config := s.CommittedConfig()
	if e.Kind == consensus.EntryConfig {
		j.judgeVoters(s, e, config.Voters)
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
	before, known := j.known[job.ID]
	if known && before.State.Ended() {
		s.report("job", "job %v (%s) was %s and is written again at %d, as %s", job.ID, job.Title(), before.State, e.Index,
			job.State)
	}
	if j.known == nil {
		j.known, j.Ended = map[membership.JobID]membership.Job{}, map[membership.State]uint64{}
		j.seen = map[consensus.ProposalID]bool{}
	}
	j.seen[e.Proposal] = true
	j.judgeTimes(s, &job, known, before.Expired)
	j.known[job.ID] = job
	if job.State.Ended() {
		j.Ended[job.State]++
	}
	if job.State == membership.StateDone {
		j.judgeDone(s, &job, config, !known || job.Config == job.Final)
	}
}

// judgeTimes checks decisions that depend on time, against true time.
func (j *Jobs) judgeTimes(s *Suite, job *membership.Job, known, expired bool) {
	now := s.Now()
	if j.began == nil {
		j.began = map[membership.JobID]time.Duration{}
	}
	if _, runs := j.began[job.ID]; !runs && job.Started > 0 {
		j.began[job.ID] = now
	}
	least := time.Duration(float64(job.Spec.JoinWithinMS) / (1 + j.Drift) * float64(time.Millisecond))
	if waited := now - j.began[job.ID]; job.Expired && !expired && waited < least {
		s.report("job", "job %v (%s) gave its newcomers up after %v, and they have %v to start", job.ID, job.Title(), waited,
			least)
	}
	if known || !membership.ByCare(job) {
		return
	}
	j.cared = append(j.cared, now)
	hour := time.Duration(float64(time.Hour) / (1 + j.Drift))
	within := len(slices.DeleteFunc(slices.Clone(j.cared), func(at time.Duration) bool { return now-at > hour }))
	if j.MaxPerHour > 0 && within > j.MaxPerHour {
		s.report("job", "automatic care began %d jobs within an hour, the last one %v (%s), and may begin %d", within, job.ID,
			job.Title(), j.MaxPerHour)
	}
}

// Asked records a requested change that belongs to no job.
func (j *Jobs) Asked(request *consensus.ChangeRequest) {
	if j.asked == nil {
		j.asked = map[consensus.MemberID]bool{}
	}
	for i := range request.Steps {
		j.asked[request.Steps[i].Member.ID] = true
	}
}

// Leaving adds to ids the voters that an unfinished job is to remove.
func (j *Jobs) Leaving(ids map[consensus.MemberID]bool) {
	for _, job := range j.known {
		if !job.State.Ended() {
			for _, id := range slices.Concat(job.Spec.Remove, job.Spec.Demote) {
				ids[id] = true
			}
		}
	}
}

// judgeDone checks that the members are as a job wants them, except for those named in other requests. If the change was done
// before the job began, its newcomers are members under ids that another job gave them.
func (j *Jobs) judgeDone(s *Suite, job *membership.Job, config *consensus.Config, before bool) {
	for _, id := range job.Spec.Remove {
		if config.Contains(id) && !j.asked[id] {
			s.report("job", "job %v (%s) is done, and %v is a member", job.ID, job.Title(), id)
		}
	}
	for _, id := range voting(&job.Spec) {
		if !config.IsVoter(id) && !j.asked[id] && !(before && votesAs(config, &job.Spec, id)) {
			s.report("job", "job %v (%s) is done, and %v does not vote", job.ID, job.Title(), id)
		}
	}
}

// votesAs reports whether a voter has the peer URLs of a newcomer.
func votesAs(config *consensus.Config, spec *membership.Spec, id consensus.MemberID) bool {
	for _, n := range spec.Add {
		if n.ID != id {
			continue
		}
		return slices.ContainsFunc(config.Members, func(m consensus.Member) bool {
			return config.IsVoter(m.ID) && slices.Equal(m.PeerURLs, n.PeerURLs)
		})
	}
	return false
}

// voting lists the members that vote once a job is done.
func voting(spec *membership.Spec) []consensus.MemberID {
	in := slices.Clone(spec.Promote)
	for _, n := range spec.Add {
		if !n.Learner {
			in = append(in, n.ID)
		}
	}
	return in
}

// judgeVoters checks that a request named each voter that leaves, if there are fewer voters afterwards.
func (j *Jobs) judgeVoters(s *Suite, e *consensus.Entry, voters []consensus.MemberID) {
	before := j.voters
	j.voters = slices.Clone(voters)
	change, err := consensus.DecodeConfigChange(e.Payload)
	if len(voters) >= len(before) || err != nil || change.Abort { // an abort restores the earlier voters
		return
	}
	for _, id := range before {
		if !slices.Contains(voters, id) && !j.asked[id] && !j.wanted(id, before) {
			s.report("job", "the configuration at %d has voters %v after %v, and nobody asks for fewer", e.Index, voters,
				before)
			return
		}
	}
}

// wanted reports whether a job wants fewer voters than before, and this member to leave. Automatic care and the replacement of
// a member by another one do not, except if another request, or a single step of the job itself, has made the successor a voter
// before; if the job is cancelled then, it reverts that.
func (j *Jobs) wanted(id consensus.MemberID, before []consensus.MemberID) bool {
	for _, job := range j.known {
		if singly := job.Spec.Protocol == consensus.ProtocolSingle && !job.State.Ended(); singly {
			in := voting(&job.Spec)
			lacks := func(id consensus.MemberID) bool { return !slices.Contains(before, id) }
			leaves := slices.Contains(job.Spec.Remove, id) && len(in) > 0 && !slices.ContainsFunc(in, lacks)
			if leaves || (job.CancelAsked || job.Expired) && slices.Contains(in, id) {
				return true
			}
		}
		if job.State.Ended() || !slices.Contains(job.Spec.Remove, id) && !slices.Contains(job.Spec.Demote, id) {
			continue
		}
		if job.Spec.Kind != membership.KindReplace && !membership.ByCare(&job) ||
			slices.ContainsFunc(voting(&job.Spec), func(in consensus.MemberID) bool { return j.asked[in] }) {
			return true
		}
	}
	return false
}
