package member

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/transport"
)

// joinPoll is how often a member asks whether the job that adds a newcomer has come that far.
const joinPoll = time.Second

// JoinRequest is what a process says that wants to be a member.
type JoinRequest struct {
	Name     string   `json:"name,omitempty"`
	PeerURLs []string `json:"peer_urls"`
	Learner  bool     `json:"learner,omitempty"` // to stay one
	// Replaces is the id, in hex, or the name of a member that goes once the newcomer has caught up; empty: none.
	Replaces string `json:"replaces,omitempty"`
	// Storage is the data directory that will speak for it. A newcomer that shows it is bound with its first entry.
	Storage consensus.StorageID `json:"storage,omitzero"`
}

// JoinAnswer tells it who it is.
type JoinAnswer struct {
	Cluster consensus.ClusterID `json:"cluster"`
	Epoch   consensus.Epoch     `json:"epoch"`
	ID      consensus.MemberID  `json:"id"`
	Members []consensus.Member  `json:"members"`
	Job     membership.JobID    `json:"job,omitempty"` // that takes care of it, zero if none does
}

// joinQuestion is a JoinRequest on its way to the leader. Job, once it is known, is the job that is waited for.
type joinQuestion struct {
	JoinRequest
	Job membership.JobID `json:"job,omitempty"`
}

// joinStep is what the leader says: the answer, if ID is set, or the job that has to be waited for.
type joinStep struct {
	JoinAnswer
	Ready bool `json:"ready,omitempty"`
}

// Join asks whoever listens at a peer URL to let the caller, who has no identity yet, be a member. It asks which cluster that
// is first: nobody joins a cluster that it can not name.
func Join(ctx context.Context, o transport.Options, url string, r JoinRequest) (JoinAnswer, error) {
	body, err := json.Marshal(question[JoinRequest]{Asked: r})
	if err != nil {
		return JoinAnswer{}, err
	}
	if o.Cluster == 0 {
		d, err := Describe(ctx, o, url)
		if err != nil {
			return JoinAnswer{}, err
		}
		o.Cluster = d.Cluster
	}
	raw, err := transport.CallURL(ctx, o, url, methodJoin, body)
	if err != nil {
		return JoinAnswer{}, fromStatus(err)
	}
	return openReply[JoinAnswer](raw)
}

// Join makes the caller a member-to-be and tells it who it is, once it is in the configuration: it may be started then.
// Asked again with the same URLs, it gives the same answer until the member has started. A newcomer enters as a learner,
// and votes once it has caught up, unless it is to stay one; one that replaces a member is added by a job.
func (m *Member) Join(ctx context.Context, r JoinRequest) (JoinAnswer, error) {
	r.PeerURLs = slices.Sorted(slices.Values(r.PeerURLs))
	if err := autopilot.Valid(&membership.Spec{Add: []membership.Newcomer{r.newcomer()}}); err != nil {
		return JoinAnswer{}, err
	}
	q := joinQuestion{JoinRequest: r}
	for {
		config, jobs := m.ConfigChanged(), m.JobsChanged()
		step, err := atLeader(ctx, m, methodJoinStep, q, m.joinHere)
		if err != nil || step.Ready {
			return step.JoinAnswer, err
		}
		q.Job = step.Job
		poll := time.NewTimer(joinPoll)
		select {
		case <-config:
		case <-jobs:
		case <-poll.C:
		case <-ctx.Done():
			return JoinAnswer{}, ctx.Err()
		case <-m.stopping.Done():
			return JoinAnswer{}, ErrStopped
		}
		poll.Stop()
	}
}

func (r *JoinRequest) newcomer() membership.Newcomer {
	return membership.Newcomer{Name: r.Name, PeerURLs: r.PeerURLs, Learner: r.Learner}
}

// joinHere finds the newcomer in the configuration or in a job, or takes the first step to get it there.
func (m *Member) joinHere(ctx context.Context, q joinQuestion) (joinStep, error) {
	view, _, err := pilotPorts{m}.FreshView(ctx)
	if err != nil {
		return joinStep{}, err
	}
	if job := jobOf(m.jobRows(), &q); job != nil {
		if err := contradicts(job, &view, &q); err != nil {
			return joinStep{}, err
		}
		return m.joinByJob(job, &view, &q)
	}
	if q.Job != 0 {
		return joinStep{}, membership.ErrJobFailed // long ended, and forgotten
	}
	replaced, found, err := resolve(&view, q.Replaces)
	if err != nil {
		return joinStep{}, err
	}
	if known, ok := memberAt(&view.Config, q.PeerURLs); ok && !(found && known == replaced) {
		if q.Replaces == "" || !found { // nothing to replace, or replaced already
			return m.joined(&view, known, &q, 0)
		}
		if _, err := m.joined(&view, known, &q, 0); err != nil {
			return joinStep{}, err
		}
	}
	switch {
	case q.Replaces == "":
		return m.joinAsLearner(ctx, &view, &q)
	case !found:
		return joinStep{}, &membership.SpecError{
			Text: fmt.Sprintf("no member has the id or name %s, so there is none to replace", q.Replaces),
		}
	}
	if view, err = m.whenDead(ctx, view, &q.JoinRequest, replaced); err != nil {
		return joinStep{}, err
	}
	if known, _ := view.Config.Member(replaced); view.Config.IsLearner(replaced) && !known.Promote && !known.Joining {
		q.Learner = true // else there would be a voter more than before
	}
	spec := membership.Spec{
		Kind: membership.KindReplace, Add: []membership.Newcomer{q.newcomer()}, Remove: []consensus.MemberID{replaced},
	}
	job, err := m.startHere(ctx, startQuestion{ID: membership.JobID(autopilot.DrawID()), Spec: spec})
	if err != nil {
		return joinStep{}, err
	}
	return joinStep{JoinAnswer: JoinAnswer{Job: job.ID}}, nil
}

// mayReplace refuses to take the vote of a member that works from it, on the word of a process that is being started.
func (r *JoinRequest) mayReplace(view *membership.View, old consensus.MemberID) error {
	if !view.Works(old) {
		return nil
	}
	return &membership.SpecError{Text: fmt.Sprintf("%s (%v) is up and votes: if it is to go all the same, run "+
		"`quorate member replace %s --name %s --peer-urls %s`, which shows what that does, and start this one when it "+
		"says so", r.Replaces, old, r.Replaces, cmp.Or(r.Name, "NAME"), strings.Join(r.PeerURLs, ","))}
}

// whenDead returns a View in which old may be replaced. It may have died a moment ago, and is active for an election
// timeout after that: it is given a few of them to fall silent.
func (m *Member) whenDead(
	ctx context.Context, view membership.View, r *JoinRequest, old consensus.MemberID,
) (membership.View, error) {
	patience := time.After(4 * m.electionTimeout())
	for {
		refusal := r.mayReplace(&view, old)
		if refusal == nil {
			return view, nil
		}
		select {
		case <-m.options.tickAfter():
		case <-patience:
			return view, refusal
		case <-ctx.Done():
			return view, ctx.Err()
		case <-m.stopping.Done():
			return view, ErrStopped
		}
		var err error
		if view, _, err = (pilotPorts{m}).FreshView(ctx); err != nil {
			return view, err
		}
	}
}

// joinAsLearner adds the newcomer. If that fails in between, or somebody was faster, the next attempt finds it.
func (m *Member) joinAsLearner(ctx context.Context, view *membership.View, q *joinQuestion) (joinStep, error) {
	if owner, taken := view.NameOwner(q.Name, consensus.NoMember); taken {
		return joinStep{}, &membership.SpecError{Text: fmt.Sprintf("the name %s belongs to member %v: choose another --name, "+
			"or, if that member is lost, join with --replaces=%v", q.Name, owner, owner)}
	}
	id := consensus.MemberID(autopilot.DrawID())
	_, err := m.ChangeConfig(ctx, consensus.ChangeOne(consensus.ChangeAddLearner, consensus.Member{
		ID: id, Name: q.Name, PeerURLs: q.PeerURLs, Promote: !q.Learner, Storage: m.bindable(q.Storage),
	}))
	var refused *membership.RefusedError
	if errors.As(err, &refused) && refused.Reason == consensus.ReasonPeerURLExists {
		view, _, viewErr := pilotPorts{m}.FreshView(ctx)
		if viewErr != nil {
			return joinStep{}, viewErr
		}
		if known, ok := memberAt(&view.Config, q.PeerURLs); ok {
			return m.joined(&view, known, q, 0)
		}
	}
	if err != nil {
		return joinStep{}, err
	}
	now, err := m.View(ctx)
	if err != nil {
		return joinStep{}, err
	}
	return m.joined(&now, id, q, 0)
}

// bindable is the storage id by which a newcomer may be bound at once: none while nobody is bound, for the first bindings of a
// cluster are those of its voters.
func (m *Member) bindable(id consensus.StorageID) consensus.StorageID {
	if config := m.configNow(); !config.Binds() {
		return consensus.NoStorage
	}
	return id
}

// joinByJob answers for a newcomer of a job.
func (m *Member) joinByJob(job *membership.Job, view *membership.View, q *joinQuestion) (joinStep, error) {
	known, ok := memberAt(&view.Config, q.PeerURLs)
	if ok && !slices.Contains(job.Spec.Remove, known) {
		return m.joined(view, known, q, job.ID)
	}
	if job.State.Ended() {
		return joinStep{}, fmt.Errorf("%w: %s", membership.ErrJobFailed, job.Message)
	}
	return joinStep{JoinAnswer: JoinAnswer{Job: job.ID}}, nil
}

// jobOf returns the job that is waited for, else the first unfinished one that adds a member with these URLs.
func jobOf(rows []autopilot.Row, q *joinQuestion) *membership.Job {
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
func contradicts(job *membership.Job, view *membership.View, q *joinQuestion) error {
	id, found, err := resolve(view, q.Replaces)
	if err != nil || !found || job.ID == q.Job || slices.Contains(job.Spec.Remove, id) {
		return err
	}
	return &membership.SpecError{Text: fmt.Sprintf("job %v adds the member at %s, and not in place of %s: join without "+
		"--replaces, or cancel the job", job.ID, strings.Join(q.PeerURLs, ","), q.Replaces)}
}

// joined answers that the caller is a member, if it cannot have been one before: a process that has lost its disk has
// lost what it promised, and must not take part under the same id again.
func (m *Member) joined(
	view *membership.View, id consensus.MemberID, q *joinQuestion, job membership.JobID,
) (joinStep, error) {
	seen, _ := view.Member(id)
	if known, _ := view.Config.Member(id); !known.Storage.IsZero() && known.Storage != q.Storage {
		return joinStep{}, membership.ErrAlreadyStarted
	}
	if seen.Started || seen.Active || seen.Match > 0 || view.Config.IsVoter(id) {
		return joinStep{}, membership.ErrAlreadyStarted
	}
	members := withoutStorage(view.Config.Members)
	return joinStep{
		JoinAnswer: JoinAnswer{
			Cluster: m.Cluster(), Epoch: m.data.Identity.Epoch, ID: id, Members: members, Job: job,
		}, Ready: true,
	}, nil
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

// memberAt returns the member that has exactly these peer URLs.
func memberAt(config *consensus.Config, urls []string) (consensus.MemberID, bool) {
	for i := range config.Members {
		if membership.SameURLs(config.Members[i].PeerURLs, urls) {
			return config.Members[i].ID, true
		}
	}
	return consensus.NoMember, false
}
