package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/sim/changes"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/routines"
	"github.com/quorate/quorate/internal/transport"
)

const (
	jobScan    = autopilot.JobPoll
	repairScan = time.Second
)

var errNotLeading = errors.New("sim: not the leader")

// pilot is package autopilot on one member: the code of members, with events in place of goroutines. A step whose outcome comes
// later delays the next one until then.
type pilot struct {
	h         *host
	driver    autopilot.Driver
	term      consensus.Term // term of which all earlier entries have been applied here
	busy      bool
	addresses *autopilot.Addresses
	requests  *autopilot.Requests
	repair    *autopilot.Repair
	accept    routines.Lock // held by a process that joins
}

// startPilot starts the pilot of a life.
func (h *host) startPilot() {
	if !h.run.plan.Jobs {
		return
	}
	p := &pilot{h: h, addresses: autopilot.NewAddresses(pilotPorts{h}, discard)}
	p.requests = autopilot.NewRequests(pilotPorts{h}, p.addresses, autopilot.RequestOptions{
		Draw: func() uint64 { return h.run.chance.Uint64()>>1 | 1 },
	})
	silence := 2 * h.extension().Milliseconds()
	p.repair = autopilot.NewRepair(membership.Policy{
		Mode: membership.ModeAuto, DeadAfterMS: silence, StableMS: silence, Voters: h.run.plan.Members,
		MaxPerHour: h.run.plan.CareBudget,
	}, pilotPorts{h}, p.requests, discard)
	h.pilot = p
	h.after(jobScan, p.scan)
	h.after(repairScan, p.look)
	if h.run.plan.Addresses {
		h.after(addressScan, h.keepAddresses)
	}
}

// scan takes the steps of jobs.
func (p *pilot) scan() {
	p.h.after(jobScan, p.scan)
	p.step()
}

// look repairs the voters. Its view meets the condition that it meets in a member: all entries that were acknowledged before
// are applied.
func (p *pilot) look() {
	p.h.after(repairScan, p.look)
	if p.h.leads() && !p.h.run.calm {
		p.h.proc.Clients.Read(func() { p.repair.Look(context.Background()) })
	}
}

func (p *pilot) step() {
	h := p.h
	rows := pilotPorts{h}.Jobs()
	if !h.leads() || p.busy || h.run.calm && !h.run.arriving || !autopilot.Unfinished(rows) {
		return
	}
	view, term, err := pilotPorts{h}.View(context.Background())
	if err != nil {
		return
	}
	if p.term != term {
		p.busy = true
		h.proc.Clients.Read(func() {
			p.busy, p.term = false, term
			p.driver.Restart()
		})
		return
	}
	step := p.driver.Next(h.clock(), rows, &view)
	switch {
	case step.Write != nil:
		p.busy = true
		h.proc.Clients.Propose(&kv.Command{Job: member.JobOp(step.Write)}, func(r kv.Result, err error) {
			if p.busy = false; err == nil && r.Err == nil {
				p.step()
			}
		})
	case step.Change != nil:
		p.busy = true
		done := func(err error) {
			if p.busy = false; p.driver.Changed(&step, err) {
				p.step()
			}
		}
		if err := p.addresses.Confirm(context.Background(), step.Change, step.Caution); err != nil {
			h.after(0, func() { done(err) })
			return
		}
		h.change(*step.Change, done)
	case step.Transfer != consensus.NoMember:
		h.proc.Put(raft.Transfer{To: step.Transfer})
		p.driver.Transferred(&step, nil)
	}
}

// change proposes a change of the configuration.
func (h *host) change(request consensus.ChangeRequest, done func(error)) {
	request.Steps = slices.Clone(request.Steps)
	err := h.proc.Clients.Change(request, func(err error) { h.after(0, func() { done(err) }) })
	if err != nil {
		h.after(0, func() { done(err) })
	}
}

// promoteReady promotes a learner that was added to become a voter and has caught up.
func (h *host) promoteReady() {
	config, _ := h.proc.Data.Machine.Config()
	status := h.proc.Node.Replica().Status()
	if len(status.Config.Voters) >= maxVoters {
		return
	}
	for _, id := range autopilot.Promotable(&config, &status, pilotPorts{h}.Jobs()) {
		request := consensus.ChangeOne(consensus.ChangePromote, consensus.Member{ID: id})
		request.Protocol = dice.Pick(h.run.chance, h.run.plan.Protocols...)
		h.ask(request)
		return
	}
}

// pilotPorts implement the ports of package autopilot for a host. Its writes and changes happen later.
type pilotPorts struct{ h *host }

func (p pilotPorts) View(context.Context) (membership.View, consensus.Term, error) {
	status := p.h.proc.Node.Replica().Status()
	if status.Role != raft.Leader {
		return membership.View{}, 0, errNotLeading
	}
	view := member.ViewOf(&status, p.h.proc.Data.Machine, &member.ViewOptions{
		MaxLearners: p.h.run.plan.Raft.MaxLearners, Strict: p.h.run.plan.Raft.StrictReconfig, Tick: p.h.run.plan.Tick,
		Now: p.h.clock(), Trouble: func(consensus.MemberID) string { return "" },
		Transfer: func(consensus.MemberID) *membership.TransferView { return nil },
	})
	view.Faults = p.h.run.broken.Membership
	return view, status.Term, nil
}

// FreshView is View: the caller has done a read before.
func (p pilotPorts) FreshView(ctx context.Context) (membership.View, consensus.Term, error) {
	return p.View(ctx)
}

func (p pilotPorts) Jobs() []autopilot.Row {
	rows, err := member.JobRows(p.h.proc.Data.Machine.Jobs())
	if err != nil {
		p.h.suite.Report("job", err.Error())
	}
	for i := range rows {
		if p.h.run.broken.JobTwice && rows[i].State.Ended() {
			rows[i].State = membership.StateRunning
		}
	}
	return rows
}

func (p pilotPorts) Write(_ context.Context, w *autopilot.Write) error {
	if w.Version == 0 {
		config := p.Config()
		p.h.cluster.judgeReset(&w.Job.Spec, &config)
		p.h.run.struck("jobs", w.Job.Title())
	}
	p.h.proc.Clients.Propose(&kv.Command{Job: member.JobOp(w)}, func(kv.Result, error) {})
	return nil
}

func (p pilotPorts) Change(_ context.Context, request *consensus.ChangeRequest) error {
	p.h.change(*request, func(error) {})
	return nil
}

func (p pilotPorts) Transfer(_ context.Context, to consensus.MemberID) error {
	p.h.proc.Put(raft.Transfer{To: to})
	return nil
}

func (p pilotPorts) Sleep(context.Context, time.Duration) error { return nil }

func (p pilotPorts) Self() consensus.MemberID { return p.h.id }

func (p pilotPorts) Config() consensus.Config {
	config, _ := p.h.proc.Data.Machine.Config()
	return config
}

func (p pilotPorts) Started(consensus.MemberID) bool { return true }

func (p pilotPorts) Find(_ context.Context, id consensus.MemberID, url string) (transport.Presence, error) {
	return p.h.find(id, url)
}

func (p pilotPorts) Describe(ctx context.Context) (membership.View, error) {
	view, _, err := p.View(ctx)
	return view, err
}

// strikeJobs asks the leader for a job that makes sense, or does not, or cancels one.
func (o *operators) strikeJobs() {
	leader := o.cluster.leader()
	if leader == nil || leader.pilot == nil || o.cluster.lost() != nil { // a lost member is replaced first
		return
	}
	up := o.cluster.up()
	if len(up) > 2 && len(up) == len(o.cluster.present()) && dice.Chance(o.run.chance, 0.4) { // one at a time
		h := up[o.run.chance.IntN(len(up))]
		o.run.struck("dead", fmt.Sprint(h.slot))
		h.crash()
		h.startAfter(dice.Between(o.run.chance, 5*time.Second, 40*time.Second))
		return
	}
	draw := changes.Jobs{Rng: o.run.chance, Protocols: o.run.plan.Protocols, MaxVoters: maxVoters, Add: o.newcomers}
	config := leader.proc.Node.Replica().Status().Config
	id, spec := membership.JobID(o.run.chance.Uint64()>>1|1), draw.Draw(&config, leader.id)
	leader.proc.Clients.Read(func() {
		if rows := (pilotPorts{leader}).Jobs(); len(rows) > 0 && dice.Chance(o.run.chance, 0.15) {
			_, _ = leader.pilot.requests.Cancel(context.Background(), rows[o.run.chance.IntN(len(rows))].ID) // may fail
			return
		}
		_, _ = leader.pilot.requests.Start(context.Background(), id, &spec) // may fail
	})
}

// strikeDates gives leaders voters to repair by themselves, one after another: there is a standby, a voter is down for long,
// and a member with another date leads soon.
func (o *operators) strikeDates() {
	leader, rest := o.cluster.led()
	if leader == nil || leader.pilot == nil || len(rest) < 2 || o.cluster.lost() != nil {
		return
	}
	config := leader.proc.Node.Replica().Status().Config
	if len(config.Learners) == 0 {
		if add := o.newcomers(true); len(add) > 0 {
			id, spec := membership.JobID(o.run.chance.Uint64()>>1|1), membership.Spec{Kind: membership.KindChange, Add: add}
			leader.proc.Clients.Read(func() { _, _ = leader.pilot.requests.Start(context.Background(), id, &spec) })
		}
		return
	}
	voters := slices.DeleteFunc(rest, func(h *host) bool { return !config.IsVoter(h.id) })
	if len(voters) < 2 || len(voters)+1 < len(config.Voters) { // one at a time
		return
	}
	at := o.run.chance.IntN(len(voters))
	h, next := voters[at], voters[(at+1)%len(voters)]
	o.run.struck("dates", fmt.Sprintf("%d, and %d leads", h.slot, next.slot))
	h.crash()
	h.startAfter(dice.Between(o.run.chance, 20*time.Second, 40*time.Second))
	leader.proc.Put(raft.Transfer{To: next.id})
}

// newcomers adds a machine, which in rare cases never starts.
func (o *operators) newcomers(learner bool) []membership.Newcomer {
	if len(o.cluster.list) >= maxHosts {
		return nil
	}
	h := o.cluster.addHost(o.run.chance.Uint64(), consensus.MemberID(len(o.cluster.list)+1), consensus.SnapshotMeta{})
	if dice.Chance(o.run.chance, 0.9) {
		h.startAfter(dice.Between(o.run.chance, 0, 2*time.Second))
	}
	known := changes.Describe(h.id)
	return []membership.Newcomer{{ID: h.id, Name: known.Name, PeerURLs: known.PeerURLs, Learner: learner}}
}
