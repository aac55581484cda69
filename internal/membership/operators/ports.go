package operators

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/transport"
)

// A world is what package autopilot knows as a Cluster and a Finder. All that is asked of it happens at once.

var errNobodyLeads = errors.New("operators: nobody leads")

var discard = slog.New(slog.DiscardHandler)

func (w *world) addresses() *autopilot.Addresses { return autopilot.NewAddresses(w, discard) }

func (w *world) requests() *autopilot.Requests {
	return autopilot.NewRequests(w, w.addresses(), autopilot.RequestOptions{Draw: func() uint64 {
		w.drawn++
		return uint64(w.drawn)
	}})
}

// View returns what the leader sees, in the only term.
func (w *world) View(context.Context) (membership.View, consensus.Term, error) {
	if w.leader() == consensus.NoMember {
		return membership.View{}, 0, errNobodyLeads
	}
	return *w.view(), 1, nil
}

func (w *world) FreshView(ctx context.Context) (membership.View, consensus.Term, error) {
	return w.View(ctx)
}

// Self is no member: operators look from elsewhere.
func (w *world) Self() consensus.MemberID { return consensus.NoMember }

func (w *world) Describe(ctx context.Context) (membership.View, error) {
	view, _, err := w.View(ctx)
	return view, err
}

func (w *world) Jobs() []autopilot.Row {
	rows := make([]autopilot.Row, len(w.jobs))
	for i := range w.jobs {
		rows[i] = autopilot.Row{Job: w.jobs[i].Job, Version: w.jobs[i].version}
	}
	return rows
}

// Write replaces a job, and judges one that ends. One that had nothing to do is not kept: it would only make more states.
func (w *world) Write(_ context.Context, to *autopilot.Write) error {
	at := slices.IndexFunc(w.jobs, func(j job) bool { return j.ID == to.Job.ID })
	switch {
	case at < 0 && to.Version != 0, at >= 0 && w.jobs[at].version != to.Version:
		return kv.ErrJobConflict
	case at < 0 && to.Job.State.Ended():
		return nil
	case at < 0:
		w.jobs = append(w.jobs, job{Job: to.Job, version: 1, promised: -1})
		return nil
	}
	j := &w.jobs[at]
	ends := !j.State.Ended() && to.Job.State.Ended()
	j.Job = to.Job
	j.version++
	if ends {
		w.ended(j)
	}
	return nil
}

// Change changes the configuration.
func (w *world) Change(_ context.Context, request *consensus.ChangeRequest) error {
	v := w.view()
	facts := reconfig.Facts{Tombstones: w.tombs, Strict: true, CaughtUp: w.fit(), CountLaggards: w.rules.Planner.CountLaggards}
	for i := range v.Members {
		if v.Members[i].Active {
			facts.Active = append(facts.Active, v.Members[i].ID)
		}
	}
	change, reason := reconfig.Next(&w.config, w.id(), request, &facts)
	if reason != consensus.ReasonNone {
		return &membership.RefusedError{Reason: reason, Config: w.id()}
	}
	before := w.config.IDs()
	moves := slices.ContainsFunc(request.Steps, func(s consensus.ChangeStep) bool { return s.Kind == consensus.ChangeUpdate })
	w.config = change.Config.Settle()
	w.index++
	for _, id := range before {
		if !w.config.Contains(id) {
			w.tombs = append(w.tombs, id)
		}
	}
	w.changed(moves, request)
	return nil
}

// Transfer fails: it does not matter here which member leads, and leaders are removed as they are.
func (w *world) Transfer(context.Context, consensus.MemberID) error {
	return errors.New("operators: no leader hands over")
}

func (w *world) Sleep(context.Context, time.Duration) error { return nil }

func (w *world) Config() consensus.Config { return w.config.Clone() }

func (w *world) Started(id consensus.MemberID) bool { return w.process(id) != nil }

func (w *world) Find(_ context.Context, id consensus.MemberID, url string) (transport.Presence, error) {
	p := w.process(id)
	switch {
	case w.rules.AnyAddress, p != nil && p.up && p.url == url:
		return transport.Present, nil
	case slices.ContainsFunc(w.processes, func(p process) bool { return p.up && p.url == url }):
		return transport.Another, nil
	}
	return transport.Silent, nil
}

// now is what the leader's clock shows.
func (w *world) now() time.Time { return time.UnixMilli(w.view().Now) }

// drive lets the leader do for the jobs all that it can.
func (w *world) drive() {
	runner := autopilot.NewRunner(w, w.addresses(), w.now, discard)
	for range 200 {
		if w.broken != "" {
			return
		}
		if pause, busy := runner.Turn(context.Background()); !busy || pause > 0 {
			return
		}
	}
	w.breaks("queue: the jobs are driven for ever: %s", w.titles())
}

// draft shows a plan; nil if it is blocked or there is nothing to do.
func (w *world) draft(s membership.Spec, title string) *plan {
	drawn, err := w.requests().Plan(context.Background(), &s)
	if err != nil || drawn.Done || len(drawn.Blockers) > 0 {
		return nil
	}
	p := &plan{spec: s, title: title, voters: drawn.Now.Voters, jobs: len(w.jobs)}
	if n := len(drawn.Steps); n > 0 {
		p.voters = drawn.Steps[n-1].After.Voters
	}
	if !w.rules.PlansAreWishes {
		p.spec.Expected, p.spec.After = drawn.Config, drawn.WaitsFor
	}
	return p
}

// start asks for a job; promised is what a plan showed, with so many jobs before it.
func (w *world) start(s membership.Spec, promised, before int) {
	n := len(w.jobs)
	_, err := w.requests().Start(context.Background(), membership.JobID(n+1), &s)
	if err != nil || len(w.jobs) == n {
		return
	}
	j := &w.jobs[n]
	j.promised, j.unknown = promised, promised >= 0 && n > before
	if s.Kind != membership.KindReplace {
		for i := range s.Add {
			if !s.Add[i].Learner {
				w.budget++
			}
		}
		w.budget += len(s.Promote)
	}
}

func (w *world) cancel(i int) {
	_, _ = w.requests().Cancel(context.Background(), w.jobs[i].ID) // without a leader nothing is cancelled
}

// join is a process that is started with --join and perhaps --replaces.
func (w *world) join(who, url string, replaces consensus.MemberID) {
	works, jobs := w.view().Works(replaces), len(w.jobs)
	q := autopilot.JoinQuestion{JoinRequest: autopilot.JoinRequest{
		Name: who, PeerURLs: []string{url}, Replaces: replaces.String(),
	}}
	_, _ = w.requests().Join(context.Background(), q) // a refusal changes nothing
	if works && len(w.jobs) > jobs {
		w.breaks("vote: %s works, and %s joins in its place", name(replaces), who)
	}
}

// joinAsLearner is the same without --replaces: it needs no job.
func (w *world) joinAsLearner(who, url string) {
	q := autopilot.JoinQuestion{JoinRequest: autopilot.JoinRequest{Name: who, PeerURLs: []string{url}, Learner: true}}
	_, _ = w.requests().Join(context.Background(), q)
}

// updateTo changes peer URLs by no job.
func (w *world) updateTo(id consensus.MemberID, url string, demand membership.Caution) {
	request := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: id, PeerURLs: []string{url}})
	if w.leader() != consensus.NoMember && w.addresses().Confirm(context.Background(), &request, demand) == nil {
		_ = w.Change(context.Background(), &request) // a refusal changes nothing
	}
}

// announce lets members that are not where the configuration says tell it, and the leader drop former URLs.
func (w *world) announce() {
	if w.leader() == consensus.NoMember {
		return
	}
	for _, id := range w.config.IDs() {
		if p := w.process(id); p != nil && p.up && !w.rules.NobodyAnnounces {
			_ = w.requests().Moved(context.Background(), id, []string{p.url}) // it tells it again
		}
	}
	w.requests().SettleAddresses(context.Background())
}

func (w *world) titles() string {
	var words []string
	for i := range w.jobs {
		j := &w.jobs[i]
		words = append(words, fmt.Sprintf("%v %s: %s %s (%s)", j.ID, j.Title(), j.State, j.Phase, j.Message))
	}
	return strings.Join(words, "; ")
}
