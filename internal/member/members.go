package member

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/changecount"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/peercall"
	"github.com/quorate/quorate/internal/transport"
)

const (
	// joinPoll is how often a member asks whether the job that adds a newcomer has come that far.
	joinPoll = time.Second
	// addressInterval is how often a member looks whether an address has to be put right.
	addressInterval = time.Second
)

// Membership answers, at any member, requests about the members of the cluster. What only the leader knows or does, it asks the
// leader for.
type Membership struct {
	self     selfPort
	asks     *requests
	views    *leaderView
	config   *appliedConfig
	caller   *peercall.Caller
	requests *autopilot.Requests
	repair   *autopilot.Repair
	jobs     jobTable
	changes  changecount.Counter
	changed  news // of the configuration
	logger   *slog.Logger
	stopping context.Context
}

// selfPort is what it needs of its own member.
type selfPort interface {
	ID() consensus.MemberID
	Leader() consensus.MemberID
	identity() consensus.Identity
	ForeignEpochs() []string
}

// init ties it to its member, but for the caller.
func (s *Membership) init(m *Member) {
	s.self, s.logger, s.stopping = m, m.logger, m.stopping
	s.asks, s.views, s.config = &m.requests, &m.views, &m.config
	s.jobs.machine, s.jobs.logger = m.Machine, m.logger
	s.requests = autopilot.NewRequests(pilotPorts{m}, m.addresses, autopilot.RequestOptions{
		ElectionTimeout: m.electionTimeout(), Poll: 5 * m.options.TickInterval,
	})
	s.repair = autopilot.NewRepair(m.options.Care, pilotPorts{m}, s.requests, m.logger)
}

// applied takes note of entries that are applied here.
func (s *Membership) applied(entries []consensus.Entry) {
	s.changes.Applied(entries)
	s.jobs.applied(entries)
	if slices.ContainsFunc(entries, ofConfig) {
		s.changed.tell()
	}
}

// ofConfig reports whether an entry changes the configuration, or settles it.
func ofConfig(e consensus.Entry) bool {
	return e.Kind == consensus.EntryConfig || e.Kind == consensus.EntryNoop && len(e.Payload) > 0
}

// serve answers what other members ask about the members.
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
	peercall.Serve(t, &methodJoin, s.Join)
	peercall.Serve(t, &methodMoved, s.moved)
}

func atLeader[Q, A any](
	ctx context.Context, s *Membership, method *peercall.Method[Q, A], q Q,
) (answer A, err error) {
	if err := s.asks.awaitStart(ctx); err != nil {
		return answer, err
	}
	return peercall.AtLeader(ctx, s.caller, method, q)
}

// DescribeCluster returns what the leader knows of the cluster, and its term.
func (s *Membership) DescribeCluster(ctx context.Context) (membership.View, consensus.Term, error) {
	answer, err := atLeader(ctx, s, &methodView, peercall.Nothing{})
	for _, alarm := range s.self.ForeignEpochs() { // the leader may not have met them
		if err == nil && !slices.Contains(answer.View.Alarms, alarm) {
			answer.View.Alarms = append(answer.View.Alarms, alarm)
		}
	}
	return answer.View, answer.Term, err
}

func (s *Membership) viewHere(ctx context.Context, _ peercall.Nothing) (clusterAnswer, error) {
	view, term, err := s.views.view(ctx)
	view.Advice, view.Alarms = s.repair.Text(), s.self.ForeignEpochs()
	return clusterAnswer{View: view, Term: term}, err
}

// Plan tells what a job would do. It changes nothing.
func (s *Membership) Plan(ctx context.Context, spec *membership.Spec) (membership.Plan, error) {
	if err := autopilot.Valid(spec); err != nil {
		return membership.Plan{}, err
	}
	return atLeader(ctx, s, &methodPlan, *spec)
}

// StartJob makes a job of spec, under an id that the caller drew, or zero: see autopilot.Requests.
func (s *Membership) StartJob(
	ctx context.Context, id membership.JobID, spec *membership.Spec,
) (membership.Job, error) {
	if err := autopilot.Valid(spec); err != nil {
		return membership.Job{}, err
	}
	if id == 0 { // here and not at the leader, which may be asked twice
		id = membership.JobID(autopilot.DrawID())
	}
	return atLeader(ctx, s, &methodStart, startQuestion{ID: id, Spec: *spec})
}

// CancelJob asks for the end of a job: see autopilot.Requests.
func (s *Membership) CancelJob(ctx context.Context, id membership.JobID) (membership.Job, error) {
	return atLeader(ctx, s, &methodCancel, id)
}

// Jobs returns the jobs that the cluster remembers as they are applied here, oldest first.
func (s *Membership) Jobs() []membership.Job { return autopilot.Jobs(s.jobs.rows()) }

// JobsChanged is closed when the next write of a job has been applied here.
func (s *Membership) JobsChanged() <-chan struct{} { return s.jobs.changed.next() }

// ConfigChanged is closed when the next configuration entry, or one that settles a configuration, has been applied here.
func (s *Membership) ConfigChanged() <-chan struct{} { return s.changed.next() }

// ChangeCounts tells how configuration changes ended, for metrics.
func (s *Membership) ChangeCounts() []changecount.Count { return s.changes.Counts() }

// StaleProposals counts the commands of this member that a leader refused because they were bound to a configuration
// that was no longer in force. They went out again at once.
func (s *Membership) StaleProposals() uint64 { return s.asks.stale() }

// Advice says what is wrong with the voters: see autopilot.Repair.
func (s *Membership) Advice() string { return s.repair.Text() }

// Join makes the caller a member-to-be and tells it who it is, once it is in the configuration: it may be started then.
// Asked again with the same URLs, it gives the same answer until the member has started.
func (s *Membership) Join(ctx context.Context, r autopilot.JoinRequest) (autopilot.JoinAnswer, error) {
	r.PeerURLs = slices.Sorted(slices.Values(r.PeerURLs))
	if err := r.Validate(); err != nil {
		return autopilot.JoinAnswer{}, err
	}
	q := autopilot.JoinQuestion{JoinRequest: r}
	for {
		config, jobs := s.ConfigChanged(), s.JobsChanged()
		step, err := atLeader(ctx, s, &methodJoinStep, q)
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
			return autopilot.JoinAnswer{}, ctx.Err()
		case <-s.stopping.Done():
			return autopilot.JoinAnswer{}, ErrStopped
		}
		poll.Stop()
	}
}

func (s *Membership) joinHere(ctx context.Context, q autopilot.JoinQuestion) (autopilot.JoinStep, error) {
	step, err := s.requests.Join(ctx, q)
	own := s.self.identity()
	step.Cluster, step.Epoch = own.Cluster, own.Epoch
	return step, err
}

// Join asks whoever listens at a peer URL to let the caller, who has no identity yet, be a member. It asks which cluster that
// is first: nobody joins a cluster that it can not name.
func Join(ctx context.Context, o transport.Options, url string, r autopilot.JoinRequest) (autopilot.JoinAnswer, error) {
	if o.Cluster == 0 {
		d, err := Describe(ctx, o, url)
		if err != nil {
			return autopilot.JoinAnswer{}, err
		}
		o.Cluster = d.Cluster
	}
	return callURL(ctx, o, url, &methodJoin, r)
}

// moved takes what a member says of its address to the leader.
func (s *Membership) moved(ctx context.Context, q movedQuestion) (peercall.Nothing, error) {
	return atLeader(ctx, s, &methodMovedStep, q)
}

func (s *Membership) movedHere(ctx context.Context, q movedQuestion) (peercall.Nothing, error) {
	return peercall.Nothing{}, s.requests.Moved(ctx, q.ID, q.URLs)
}

// announce tells the other members that this one is at urls, if the configuration says something else. They are asked one after
// the other: nobody but they can be reached, for the leader does not know where to send what it has to say.
func (s *Membership) announce(urls []string) (told bool) {
	config, id := s.config.now(), s.self.ID()
	known, ok := config.Member(id)
	if !ok || membership.SameURLs(known.PeerURLs, urls) {
		return ok
	}
	if s.self.Leader() == id {
		return s.requests.Moved(s.stopping, id, urls) == nil
	}
	for i := range config.Members {
		to := config.Members[i].ID
		if to == id {
			continue
		}
		ctx, cancel := context.WithTimeout(s.stopping, autopilot.StepPatience)
		_, err := peercall.Ask(ctx, s.caller, to, &methodMoved, movedQuestion{ID: id, URLs: urls})
		cancel()
		if err == nil {
			s.logger.Info("told the cluster where this member is", "urls", urls)
			return true
		}
		s.logger.Warn("could not tell the cluster where this member is now", "urls", urls, "asked", to.String(), "err", err)
	}
	return false
}
