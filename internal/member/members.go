package member

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/changecount"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/peercall"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/transport"
)

const (
	// joinPoll is how often a member asks for the progress of the job that adds a newcomer.
	joinPoll = time.Second
	// addressInterval is how often a member checks whether an address must be corrected.
	addressInterval = time.Second
)

// Membership answers, on any member, requests about the members of the cluster, and changes them. It forwards to the leader the
// requests that only the leader can answer.
type Membership struct {
	own       consensus.Identity
	ports     membershipPorts
	views     leaderView
	changer   changer
	transfer  transfer
	addresses *autopilot.Addresses
	requests  *autopilot.Requests
	repair    *autopilot.Repair
	jobs      jobTable
	changes   changecount.Counter
	changed   broadcast.Signal // of the configuration
	wrong     string           // last error of announce about the URLs
	told      bool             // announce has told the cluster the URLs of this member
	untold    onceAMinute      // warnings of announce, with a limit
	logger    *slog.Logger
}

// membershipPorts are the port of Membership to its member.
type membershipPorts struct {
	leader   *lanes.KnownLeader
	requests *requests
	config   *appliedConfig
	peers    *peers
	caller   *peercall.Caller
	status   func() raft.Status
	put      func(inputs ...raft.Input) // to the core
	progress func(to consensus.MemberID) *membership.TransferView
	alarms   func() []string // as Member.Alarms
	stopping context.Context
}

// init connects s to its member.
func (s *Membership) init(o *Options, ports *membershipPorts) {
	s.own, s.ports, s.logger = o.Data.Identity, *ports, o.Logger
	s.jobs.machine, s.jobs.logger = ports.config.stores.Machine, o.Logger
	s.views = leaderView{
		awaitStart: ports.requests.awaitStart, status: ports.status, stores: ports.config.stores, clock: o.Clock,
		stopping: ports.stopping,
		options: ViewOptions{
			MaxLearners: o.Raft.MaxLearners, Strict: o.Raft.StrictReconfig, Tick: o.TickInterval,
			Trouble: ports.peers.trouble, Transfer: ports.progress,
		},
	}
	s.addresses = autopilot.NewAddresses(pilotPorts{s}, o.Logger)
	s.changer = changer{
		confirm: func(ctx context.Context, request *consensus.ChangeRequest) error {
			return s.addresses.Confirm(ctx, request, membership.Lenient)
		},
		entry: ports.requests.propose, readIndex: ports.requests.readIndex, config: ports.config.now,
		changed: s.ConfigChanged, patience: o.electionTimeout(), poll: 5 * o.TickInterval, stopping: ports.stopping,
	}
	s.transfer = transfer{
		leader: ports.leader, status: ports.status, nameOf: ports.config.nameOf, patience: 3 * o.electionTimeout(),
		begin: func(to consensus.MemberID) { ports.put(raft.Transfer{To: to}) }, stopping: ports.stopping,
	}
	s.requests = autopilot.NewRequests(pilotPorts{s}, s.addresses, autopilot.RequestOptions{
		ElectionTimeout: o.electionTimeout(), Poll: 5 * o.TickInterval,
		Admit: (&admission{stores: ports.config.stores, propose: ports.requests.command, clock: o.Clock,
			certificates: ports.peers.wantCertificates}).admit,
	})
	s.repair = autopilot.NewRepair(o.Care, pilotPorts{s}, s.requests, o.Logger)
}

// applied notes the changes of entries that are applied here.
func (s *Membership) applied(entries []consensus.Entry) {
	s.changes.Applied(entries)
	s.jobs.applied(entries)
	if slices.ContainsFunc(entries, ofConfig) {
		s.changed.Send()
	}
}

// restored notes the changes of a snapshot that has replaced the store.
func (s *Membership) restored() {
	s.changed.Send()
	s.jobs.changed.Send()
}

// ofConfig reports whether an entry changes the configuration, or settles it.
func ofConfig(e consensus.Entry) bool {
	return e.Kind == consensus.EntryConfig || e.Kind == consensus.EntryNoop && len(e.Payload) > 0
}

// serve answers the calls of other members about the members.
func (s *Membership) serve(t *peercall.Table) {
	peercall.Serve(t, &methodView, s.viewHere)
	peercall.Serve(t, &methodPlan, func(ctx context.Context, spec membership.Spec) (membership.Plan, error) {
		return s.requests.Plan(ctx, &spec)
	})
	peercall.Serve(t, &methodStart, func(ctx context.Context, q startQuestion) (membership.Job, error) {
		return s.requests.Start(ctx, q.ID, &q.Spec)
	})
	peercall.Serve(t, &methodCancel, s.requests.Cancel)
	peercall.Serve(t, &methodJoinStep, s.joinHere)
	peercall.Serve(t, &methodMovedStep, s.movedHere)
	peercall.Serve(t, &methodJoin, func(ctx context.Context, r autopilot.JoinRequest) (autopilot.JoinAnswer, error) {
		if err := s.ports.requests.awaitStart(ctx); err != nil { // before the start no caller's certificate is seen
			return autopilot.JoinAnswer{}, err
		}
		return s.join(ctx, r, s.ports.peers.showCertificate(ctx, r.PeerURLs))
	})
	peercall.Serve(t, &methodMoved, s.moved)
}

func atLeader[Q, A any](
	ctx context.Context, s *Membership, method *peercall.Method[Q, A], q Q,
) (answer A, err error) {
	if err := s.ports.requests.awaitStart(ctx); err != nil {
		return answer, err
	}
	return peercall.AtLeader(ctx, s.ports.caller, method, q)
}

// DescribeCluster returns the leader's view of the cluster, and its term.
func (s *Membership) DescribeCluster(ctx context.Context) (membership.View, consensus.Term, error) {
	answer, err := atLeader(ctx, s, &methodView, peercall.Nothing{})
	for _, alarm := range s.ports.alarms() { // the leader may not know them
		if err == nil && !slices.Contains(answer.View.Alarms, alarm) {
			answer.View.Alarms = append(answer.View.Alarms, alarm)
		}
	}
	return answer.View, answer.Term, err
}

func (s *Membership) viewHere(ctx context.Context, _ peercall.Nothing) (clusterAnswer, error) {
	view, term, err := s.views.view(ctx)
	view.Advice, view.Alarms = s.repair.Text(), s.ports.alarms()
	return clusterAnswer{View: view, Term: term}, err
}

// Plan returns the steps that a job would take. It changes nothing.
func (s *Membership) Plan(ctx context.Context, spec *membership.Spec) (membership.Plan, error) {
	if err := autopilot.Valid(spec); err != nil {
		return membership.Plan{}, err
	}
	return atLeader(ctx, s, &methodPlan, *spec)
}

// StartJob starts a job of spec, under an id that the caller drew, or zero: see autopilot.Requests.
func (s *Membership) StartJob(
	ctx context.Context, id membership.JobID, spec *membership.Spec,
) (membership.Job, error) {
	if err := autopilot.Valid(spec); err != nil {
		return membership.Job{}, err
	}
	if id == 0 { // drawn here and not at the leader, which may be asked twice
		id = membership.JobID(autopilot.DrawID())
	}
	return atLeader(ctx, s, &methodStart, startQuestion{ID: id, Spec: *spec})
}

// CancelJob cancels a job: see autopilot.Requests.
func (s *Membership) CancelJob(ctx context.Context, id membership.JobID) (membership.Job, error) {
	return atLeader(ctx, s, &methodCancel, id)
}

// Jobs returns the jobs that the cluster keeps, as they are applied here, oldest first.
func (s *Membership) Jobs() []membership.Job { return autopilot.Jobs(s.jobs.rows()) }

// JobsChanged returns a channel that is closed when the next write of a job has been applied here.
func (s *Membership) JobsChanged() <-chan struct{} { return s.jobs.changed.Next() }

// ConfigChanged returns a channel that is closed when the next configuration entry, or one that settles a configuration, has
// been applied here.
func (s *Membership) ConfigChanged() <-chan struct{} { return s.changed.Next() }

// ChangeCounts returns the outcomes of configuration changes, for metrics.
func (s *Membership) ChangeCounts() []changecount.Count { return s.changes.Counts() }

// StaleProposals counts the commands of this member that a leader refused because they were bound to a configuration that was
// no longer in force. They were sent again at once.
func (s *Membership) StaleProposals() uint64 { return s.ports.requests.Stale() }

// Advice says what is wrong with the voters, or is empty: see autopilot.Repair.
func (s *Membership) Advice() string { return s.repair.Text() }

// Join adds the caller as a member and returns its identity once it is in the configuration: then it may be started. Repeated
// with the same URLs, it returns the same answer until the member has started. The caller of Join must have checked that the
// request may change the members.
func (s *Membership) Join(ctx context.Context, r autopilot.JoinRequest) (autopilot.JoinAnswer, error) {
	return s.join(ctx, r, true)
}

func (s *Membership) join(ctx context.Context, r autopilot.JoinRequest, trusted bool) (autopilot.JoinAnswer, error) {
	r.PeerURLs = slices.Sorted(slices.Values(r.PeerURLs))
	if err := r.Validate(); err != nil {
		return autopilot.JoinAnswer{}, err
	}
	q := r.Question(trusted, s.ports.peers.wantCertificates())
	for {
		config, jobs := s.ConfigChanged(), s.JobsChanged()
		step, err := atLeader(ctx, s, &methodJoinStep, q)
		if q.Heard(&step, err) {
			return step.JoinAnswer, err
		}
		poll := time.NewTimer(joinPoll)
		select {
		case <-config:
		case <-jobs:
		case <-poll.C:
		case <-ctx.Done():
			return autopilot.JoinAnswer{}, ctx.Err()
		case <-s.ports.stopping.Done():
			return autopilot.JoinAnswer{}, ErrStopped
		}
		poll.Stop()
	}
}

func (s *Membership) joinHere(ctx context.Context, q autopilot.JoinQuestion) (autopilot.JoinStep, error) {
	step, err := s.requests.Join(ctx, q)
	step.Cluster, step.Epoch = s.own.Cluster, s.own.Epoch
	return step, err
}

// Join asks the process at a peer URL to let the caller, which has no identity yet, be a member. It first asks for the
// cluster's id: a process must name the cluster that it joins.
func Join(ctx context.Context, o transport.Options, url string, r autopilot.JoinRequest) (autopilot.JoinAnswer, error) {
	r.Level = cmp.Or(r.Level, level.Own)
	if o.Self.Cluster == 0 {
		d, err := Describe(ctx, o, url)
		if err != nil {
			return autopilot.JoinAnswer{}, err
		}
		o.Self.Cluster = d.Cluster
	}
	return callURL(ctx, o, url, &methodJoin, r)
}

// moved passes a member's report of its address to the leader, unless the report is about the leader itself.
func (s *Membership) moved(ctx context.Context, q movedQuestion) (peercall.Nothing, error) {
	if !autopilot.LeaderLooks(q.ID, s.ports.leader.Leader()) {
		return s.movedHere(ctx, q)
	}
	return atLeader(ctx, s, &methodMovedStep, q)
}

func (s *Membership) movedHere(ctx context.Context, q movedQuestion) (peercall.Nothing, error) {
	return peercall.Nothing{}, s.requests.Moved(ctx, q.ID, q.URLs)
}

// announce tells the other members that this member is at urls, if the configuration has other URLs. It reports whether nothing
// is left to tell.
func (s *Membership) announce(urls []string, again bool) (told bool) {
	id := s.own.Member
	news := s.addresses.Announce(s.ports.stopping, id, urls, again)
	switch {
	case news.Done && news.Wrong != "" && news.Wrong != s.wrong:
		s.wrong = news.Wrong
		s.logger.Error("this member does not answer at its peer URLs, which the configuration and its "+
			"--initial-advertise-peer-urls agree on: check that --listen-peer-urls takes connections to them, and what DNS "+
			"and the network make of them; if they are wrong, correct the flag and restart the member", "urls", urls, "what",
			news.Wrong)
		return true
	case news.Done:
		return true
	case news.Wrong != "" && news.Wrong != s.wrong && news.Known.ID == consensus.NoMember:
		s.wrong = news.Wrong
		s.logger.Error("this new member waits to hear from the others, and does not answer at its "+
			"--initial-advertise-peer-urls, where they look for it: correct the flag, tell them the right URL by `quorate "+
			"member update`, and restart this member", "urls", urls, "what", news.Wrong, "member", id.String())
	case news.Wrong != "" && news.Wrong != s.wrong:
		s.wrong = news.Wrong
		s.logger.Error("the cluster is not told of --initial-advertise-peer-urls: this member does not answer at these URLs; "+
			"correct the flag and restart the member", "urls", urls, "what", news.Wrong, "known-as", news.Known.PeerURLs)
	case news.Tells && len(news.Ask) == 0:
		return s.requests.Moved(s.ports.stopping, id, news.URLs) == nil
	}
	for _, to := range news.Ask {
		ctx, cancel := context.WithTimeout(s.ports.stopping, autopilot.MovePatience)
		_, err := peercall.Ask(ctx, s.ports.caller, to, &methodMoved, movedQuestion{ID: id, URLs: news.URLs})
		cancel()
		if err == nil {
			if !s.told {
				s.logger.Info("told the cluster where this member is", "urls", news.URLs)
			}
			s.told = true
			return true
		}
		if s.untold.shouldLog(to.String()+err.Error(), time.Now()) {
			s.logger.Warn(untold, "urls", news.URLs, "asked", to.String(), "err", err)
		}
	}
	return false
}

const untold = "could not tell the cluster where this member is now, and tries again. See `quorate status` first. If a " +
	"member leads, stop none of those that follow it: if this lasts for minutes, stop this member, tell it " +
	"with `quorate set-address` where the others are, and start it again. If nobody leads, do the same with " +
	"the others after that, one after the other, so that they look for this member here"

// NameOwner returns another member that has this name, as far as entries are applied here, and that no job will remove: a
// successor may have the name of the member that it replaces.
func (s *Membership) NameOwner(name string) (consensus.MemberID, bool) {
	machine, release := s.ports.config.stores.Machine()
	config, _ := machine.Config()
	var view membership.View
	for i := range config.Members {
		known := membership.MemberView{ID: config.Members[i].ID, Name: config.Members[i].Name}
		if published, ok := machine.Published(known.ID); ok && published.Name != "" {
			known.Name = published.Name
		}
		view.Members = append(view.Members, known)
	}
	release()
	return autopilot.NameOwner(&view, s.Jobs(), name, s.own.Member)
}
