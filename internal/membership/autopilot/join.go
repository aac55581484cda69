package autopilot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/membership"
)

// JoinRequest is what a process says that wants to be a member.
type JoinRequest struct {
	Name     string   `json:"name,omitempty"`
	PeerURLs []string `json:"peer_urls"`
	Learner  bool     `json:"learner,omitempty"` // to stay one
	// Replaces is the id, in hex, or the name of a member that goes once the newcomer has caught up; empty: none.
	Replaces string `json:"replaces,omitempty"`
	// Token is a join token: see auth.JoinToken. Empty: none.
	Token string `json:"token,omitempty"`
	// Storage is the data directory that will speak for it. A newcomer that shows it is bound with its first entry.
	Storage consensus.StorageID `json:"storage,omitzero"`
	// Level is the highest feature level that its build knows, and Memory how many bytes it may have; zero: somebody else asks
	// for it, who does not know. The process is asked when it starts.
	Level  level.Level `json:"level,omitempty"`
	Memory int64       `json:"memory,omitempty"`
}

// JoinAnswer tells it who it is.
type JoinAnswer struct {
	Cluster consensus.ClusterID `json:"cluster"`
	Epoch   consensus.Epoch     `json:"epoch"`
	ID      consensus.MemberID  `json:"id"`
	Members []consensus.Member  `json:"members"`
	Job     membership.JobID    `json:"job,omitempty"` // that takes care of it, zero if none does
}

// JoinQuestion is a JoinRequest on its way to the leader. Job, once it is known, is the job that is waited for.
type JoinQuestion struct {
	JoinRequest
	Job membership.JobID `json:"job,omitempty"`
	// Trusted says that the member which was asked knows the caller: it has shown the certificate of a peer, or comes from a
	// user who may change the members.
	Trusted bool `json:"trusted,omitempty"`
	// Certificates says that the member which was asked wants certificates of its peers: a process that shows none of a peer
	// needs a token.
	Certificates bool `json:"certificates,omitempty"`
}

// Question is what a member asks the leader for a process that wants to join. certificates says that the member wants
// certificates of its peers.
func (r *JoinRequest) Question(trusted, certificates bool) JoinQuestion {
	return JoinQuestion{JoinRequest: *r, Trusted: trusted, Certificates: certificates}
}

// JoinStep is what the leader says: the answer, if Ready, or the job that has to be waited for. Cluster and Epoch are for the
// member to fill in.
type JoinStep struct {
	JoinAnswer
	Ready bool `json:"ready,omitempty"`
}

// Validate refuses what makes no sense in any cluster.
func (r *JoinRequest) Validate() error {
	return Valid(&membership.Spec{Add: []membership.Newcomer{r.newcomer()}})
}

func (r *JoinRequest) newcomer() membership.Newcomer {
	return membership.Newcomer{Name: r.Name, PeerURLs: r.PeerURLs, Learner: r.Learner}
}

// Join finds the newcomer in the configuration or in a job, or takes the first step to get it there. A newcomer enters as a
// learner, and votes once it has caught up, unless it is to stay one; one that replaces a member is added by a job. A newcomer
// that an operator or a job has added is found by its peer URLs; any other must be admitted.
func (r *Requests) Join(ctx context.Context, q JoinQuestion) (JoinStep, error) {
	view, _, err := r.cluster.FreshView(ctx)
	if err != nil {
		return JoinStep{}, err
	}
	if q.Level > 0 && q.Level < view.Level {
		refused := level.TooLowError{Own: q.Level, Active: view.Level}
		return JoinStep{}, &membership.SpecError{Text: refused.Error()}
	}
	if q.Memory > 0 && q.Memory < view.NeedsMemory {
		refused := memory.TooLittleError{Has: q.Memory, Needs: view.NeedsMemory}
		return JoinStep{}, &membership.SpecError{Text: refused.Error()}
	}
	if job := jobOf(r.cluster.Jobs(), &q); job != nil {
		if err := contradicts(job, &view, &q); err != nil {
			return JoinStep{}, err
		}
		return joinByJob(job, &view, &q)
	}
	if q.Job != 0 {
		return JoinStep{}, membership.ErrJobFailed // long ended, and forgotten
	}
	replaced, found, err := resolve(&view, q.Replaces)
	if err != nil {
		return JoinStep{}, err
	}
	if known, ok := memberOf(&view.Config, &q); ok {
		step, err := joined(&view, known, &q, 0)
		switch own := found && known == replaced; {
		case !found, own && err == nil: // nothing to replace, or replaced already: its place was given to a new member
			return step, err
		case !own && err != nil:
			return JoinStep{}, err
		}
	}
	if !q.Trusted {
		if err := r.options.Admit(ctx, &q); err != nil {
			return JoinStep{}, err
		}
	}
	if words := r.addresses.notForNewcomer(ctx, &view.Config, q.PeerURLs); words != "" {
		words += ": correct --initial-advertise-peer-urls of the process that joins"
		return JoinStep{}, &membership.SpecError{Text: words}
	}
	switch {
	case q.Replaces == "":
		return r.joinAsLearner(ctx, &view, &q)
	case !found:
		return JoinStep{}, &membership.SpecError{
			Text: fmt.Sprintf("no member has the id or name %s, so there is none to replace: if this machine has joined "+
				"before, or the member was removed, start this process without --replaces; else name a member of `quorate "+
				"member list`",
				q.Replaces),
		}
	}
	return r.joinInPlaceOf(ctx, view, q, replaced)
}

// joinInPlaceOf starts the job that replaces a member by the newcomer.
func (r *Requests) joinInPlaceOf(
	ctx context.Context, view membership.View, q JoinQuestion, replaced consensus.MemberID,
) (JoinStep, error) {
	view, err := r.whenDead(ctx, view, &q.JoinRequest, replaced)
	if err != nil {
		return JoinStep{}, err
	}
	if known, _ := view.Config.Member(replaced); view.Config.IsLearner(replaced) && !known.Promote && !known.Joining {
		q.Learner = true // else there would be a voter more than before
	}
	if err := q.mayTakePlace(&view, replaced); err != nil {
		return JoinStep{}, err
	}
	spec := membership.Spec{
		Kind: membership.KindReplace, Add: []membership.Newcomer{q.newcomer()}, Remove: []consensus.MemberID{replaced},
	}
	if q.Trusted || q.Token != "" {
		spec.Force = "--replaces, by a process that is trusted" // its operator says that the other is gone
	}
	job, err := r.Start(ctx, membership.JobID(r.options.Draw()), &spec)
	if err != nil {
		return JoinStep{}, err
	}
	return JoinStep{JoinAnswer: JoinAnswer{Job: job.ID}}, nil
}

// mayReplace refuses to take the vote of a member that works from it, on the word of a process that is being started.
func (q *JoinRequest) mayReplace(view *membership.View, old consensus.MemberID) error {
	if view.Faults.JoinTakesVotes || !view.Works(old) {
		return nil
	}
	return &membership.SpecError{Text: fmt.Sprintf("%s (%v) is up and votes: if it is to go all the same, run "+
		"`quorate member replace %s --name %s --peer-urls %s`, which shows what that does, and start this one when it "+
		"says so", q.Replaces, old, typed.Word(q.Replaces), typed.Word(cmp.Or(q.Name, "NAME")),
		typed.Word(strings.Join(q.PeerURLs, ",")))}
}

// mayTakePlace refuses a process that is not trusted and names the member whose peer URLs it has, if nothing but itself shows
// that this one has lost its disk: flags stay in units, and a disk that is not mounted is not lost. An operator gives such a
// place away.
func (q *JoinQuestion) mayTakePlace(view *membership.View, old consensus.MemberID) error {
	seen, _ := view.Member(old)
	if q.Trusted || q.Token != "" || seen.State != membership.LostItsDisk || !view.Config.IsVoter(old) ||
		!membership.SameURLs(seen.PeerURLs, q.PeerURLs) {
		return nil
	}
	return &membership.SpecError{Text: fmt.Sprintf("%s (%v) has lost its disk, as nobody but the process at its own peer "+
		"URLs shows: --replaces takes no vote away then. If the disk is lost for ever, `quorate member reset %s` from any "+
		"member that serves", q.Replaces, old, typed.Word(q.Replaces))}
}

// whenDead returns a View in which old may be replaced. It may have died a moment ago, and is active for an election
// timeout after that: it is given a few of them to fall silent.
func (r *Requests) whenDead(
	ctx context.Context, view membership.View, q *JoinRequest, old consensus.MemberID,
) (membership.View, error) {
	for waited := time.Duration(0); ; waited += r.options.Poll {
		refusal := q.mayReplace(&view, old)
		if refusal == nil || waited >= 4*r.options.ElectionTimeout {
			return view, refusal
		}
		if err := r.cluster.Sleep(ctx, r.options.Poll); err != nil {
			return view, err
		}
		var err error
		if view, _, err = r.cluster.FreshView(ctx); err != nil {
			return view, err
		}
	}
}

// joinAsLearner adds the newcomer. If that fails in between, or another leader was faster, the next attempt finds it.
func (r *Requests) joinAsLearner(ctx context.Context, view *membership.View, q *JoinQuestion) (JoinStep, error) {
	if owner, taken := view.NameOwner(q.Name, consensus.NoMember); taken && !view.Faults.AnyName {
		return JoinStep{}, &membership.SpecError{Text: fmt.Sprintf("the name %s belongs to member %v: choose another "+
			"--name, or, if that member is lost, join with --replaces=%v", q.Name, owner, owner)}
	}
	id := consensus.MemberID(r.options.Draw())
	request := consensus.ChangeOne(consensus.ChangeAddLearner, consensus.Member{
		ID: id, Name: q.Name, PeerURLs: q.PeerURLs, Promote: !q.Learner, Storage: r.bindable(q.Storage),
	})
	err := r.cluster.Change(ctx, &request)
	var refused *membership.RefusedError
	if errors.As(err, &refused) && refused.Reason == consensus.ReasonPeerURLExists {
		view, _, viewErr := r.cluster.FreshView(ctx)
		if viewErr != nil {
			return JoinStep{}, viewErr
		}
		if known, ok := memberOf(&view.Config, q); ok {
			return joined(&view, known, q, 0)
		}
	}
	if err != nil {
		return JoinStep{}, err
	}
	now, _, err := r.cluster.View(ctx)
	if err != nil {
		return JoinStep{}, err
	}
	return joined(&now, id, q, 0)
}

// bindable is the storage id by which a newcomer may be bound at once: none while no member is bound, for the first bindings
// of a cluster are those of its voters.
func (r *Requests) bindable(id consensus.StorageID) consensus.StorageID {
	if config := r.addresses.finder.Config(); !config.Binds() {
		return consensus.NoStorage
	}
	return id
}

// joinByJob answers for a newcomer of a job.
func joinByJob(job *membership.Job, view *membership.View, q *JoinQuestion) (JoinStep, error) {
	known, ok := memberOf(&view.Config, q)
	if ok && !slices.Contains(job.Spec.Remove, known) {
		return joined(view, known, q, job.ID)
	}
	if job.State.Ended() {
		return JoinStep{}, fmt.Errorf("%w: %s", membership.ErrJobFailed, job.Message)
	}
	return JoinStep{JoinAnswer: JoinAnswer{Job: job.ID}}, nil
}

// jobOf returns the job that is waited for, else the first unfinished one that adds a member with these URLs.
func jobOf(rows []Row, q *JoinQuestion) *membership.Job {
	for i := range rows {
		job := &rows[i].Job
		adds := func(n membership.Newcomer) bool { return membership.SameURLs(n.PeerURLs, q.PeerURLs) }
		if job.ID == q.Job || q.Job == 0 && !job.State.Ended() && slices.ContainsFunc(job.Spec.Add, adds) {
			return job
		}
	}
	return nil
}

// contradicts refuses a newcomer that is to replace another member than the one that goes by the job which adds it.
func contradicts(job *membership.Job, view *membership.View, q *JoinQuestion) error {
	id, found, err := resolve(view, q.Replaces)
	if err != nil || !found || job.ID == q.Job || slices.Contains(job.Spec.Remove, id) {
		return err
	}
	if known, ok := memberOf(&view.Config, q); ok && known == id {
		return nil // it is the member that the job adds, under the name of the one that went
	}
	return &membership.SpecError{Text: fmt.Sprintf("job %v adds the member at %s, and not in place of %s: join without "+
		"--replaces, or cancel the job", job.ID, strings.Join(q.PeerURLs, ","), q.Replaces)}
}

// joined answers that the caller is a member, if it cannot have been one before: a process that has lost its disk has
// lost what it promised, and must not take part under the same id again.
func joined(
	view *membership.View, id consensus.MemberID, q *JoinQuestion, job membership.JobID,
) (JoinStep, error) {
	seen, _ := view.Member(id)
	known, _ := view.Config.Member(id)
	switch {
	case !known.Storage.IsZero() && known.Storage == q.Storage: // it is the member, wherever it was before
	case !known.Storage.IsZero():
		return JoinStep{}, membership.ErrAlreadyStarted
	case len(known.FormerURLs) > 0:
		return JoinStep{}, &membership.SpecError{Text: fmt.Sprintf("these are the new peer URLs of member %v, which was at %s "+
			"and has not been found here yet: start it here with its data directory, or correct its URLs with `quorate member "+
			"update`", id, strings.Join(known.FormerURLs, ","))}
	}
	if seen.Started || seen.Active || seen.Match > 0 || view.Config.IsVoter(id) {
		return JoinStep{}, membership.ErrAlreadyStarted
	}
	if view.Undecided || view.Config.IsJoint() { // it may be lost with this leader, or taken back: ask again
		return JoinStep{JoinAnswer: JoinAnswer{Job: job}}, nil
	}
	return JoinStep{
		JoinAnswer: JoinAnswer{ID: id, Members: WithoutStorage(view.Config.Members), Job: job}, Ready: true,
	}, nil
}

// WithoutStorage keeps to members what only members need know.
func WithoutStorage(members []consensus.Member) []consensus.Member {
	members = slices.Clone(members)
	for i := range members {
		members[i].Storage = consensus.NoStorage
	}
	return members
}

// resolve finds the member that is called so; an id wins over a name.
func resolve(view *membership.View, text string) (id consensus.MemberID, found bool, err error) {
	if text == "" {
		return consensus.NoMember, false, nil
	}
	if number, err := strconv.ParseUint(text, 16, 64); err == nil && view.Config.Contains(consensus.MemberID(number)) {
		return consensus.MemberID(number), true, nil
	}
	for i := range view.Members {
		switch {
		case view.Members[i].Name != text:
		case found:
			return consensus.NoMember, false, &membership.SpecError{Text: "two members are called " + text + ": give the id"}
		default:
			id, found = view.Members[i].ID, true
		}
	}
	return id, found, nil
}

// memberOf returns the member that the process was added as: the one that is bound to its disk, else the one that has exactly
// its peer URLs.
func memberOf(config *consensus.Config, q *JoinQuestion) (consensus.MemberID, bool) {
	for i := range config.Members {
		if m := &config.Members[i]; !q.Storage.IsZero() && m.Storage == q.Storage {
			return m.ID, true
		}
	}
	for i := range config.Members {
		if membership.SameURLs(config.Members[i].PeerURLs, q.PeerURLs) {
			return config.Members[i].ID, true
		}
	}
	return consensus.NoMember, false
}

// NameOwner returns another member than self that is called so, and that no job is about to remove: a successor may bear the
// name of the member that it replaces.
func NameOwner(view *membership.View, jobs []membership.Job, name string, self consensus.MemberID) (consensus.MemberID, bool) {
	stay := membership.View{Members: slices.Clone(view.Members)}
	for i := range jobs {
		job := &jobs[i]
		stay.Members = slices.DeleteFunc(stay.Members, func(known membership.MemberView) bool {
			return !job.State.Ended() && slices.Contains(job.Spec.Remove, known.ID)
		})
	}
	return stay.NameOwner(name, self)
}
