package joins

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/sim/routines"
)

var errEnded = errors.New("sim: the process has ended")

// Ports are the ports of package autopilot to a simulated member. Of a Cluster, only the methods that do not wait are used.
type Ports interface {
	autopilot.Cluster
	autopilot.Finder
}

// Leader is the part of a member, in one life of its process, that answers join requests as the leader.
type Leader struct {
	Ports
	Addresses *autopilot.Addresses
	Options   autopilot.RequestOptions // without Accept, which is Lock
	Lock      *routines.Lock
	Laws      *Laws
	Epoch     consensus.Epoch
	Removed   func(consensus.MemberID) bool // as far as entries are applied here
	Runs      func() bool                   // whether the process still runs
	After     func(d time.Duration, f func())
	Read      func(done func())
	Write     func(w *autopilot.Write, done func(error))
	Change    func(request *consensus.ChangeRequest, done func(error))
	Describe  func(done func(membership.View, error)) // the view of the present leader
}

// Step takes the next step of a process that joins. It returns false if the member or the routine ended before.
func (l *Leader) Step(wait routines.Wait, q autopilot.JoinQuestion) (step autopilot.JoinStep, err error, ok bool) {
	c := &calls{Ports: l.Ports, leader: l, wait: wait}
	o := l.Options
	o.Accept = l.Lock.Of(wait)
	step, err = autopilot.NewRequests(c, l.Addresses, o).Join(context.Background(), q)
	if c.ended() {
		return step, err, false
	}
	if err == nil && step.Ready {
		l.Laws.Answered(q.Storage, l.Epoch, step.ID, l.Removed)
	}
	return step, err, true
}

// Moved handles a member's report of its address, at any member. It returns false if that member or the routine ended before.
func (l *Leader) Moved(wait routines.Wait, id consensus.MemberID, urls []string) (err error, ok bool) {
	c := &calls{Ports: l.Ports, leader: l, wait: wait}
	addresses := autopilot.NewAddresses(c, slog.New(slog.DiscardHandler))
	err = autopilot.NewRequests(c, addresses, l.Options).Moved(context.Background(), id, urls)
	return err, !c.ended()
}

// calls are Ports for one routine: it waits for its reads, writes and changes.
type calls struct {
	Ports
	leader *Leader
	wait   routines.Wait
	seen   []membership.View
	over   bool
}

func (c *calls) ended() bool { return c.over || !c.leader.Runs() }

func (c *calls) waits(begin func(resume func())) error {
	if c.ended() || !c.wait(begin) || c.ended() {
		c.over = true
		return errEnded
	}
	return nil
}

// outcome waits for an operation that ends with an error or nil.
func (c *calls) outcome(begin func(done func(error))) (err error) {
	ended := c.waits(func(resume func()) {
		begin(func(e error) {
			err = e
			resume()
		})
	})
	if ended != nil {
		return ended
	}
	return err
}

// View implements autopilot.Cluster.
func (c *calls) View(ctx context.Context) (membership.View, consensus.Term, error) {
	if c.ended() {
		return membership.View{}, 0, errEnded
	}
	view, term, err := c.Ports.View(ctx)
	if err == nil {
		c.seen = append(c.seen, view)
	}
	return view, term, err
}

// FreshView implements autopilot.Cluster.
func (c *calls) FreshView(ctx context.Context) (membership.View, consensus.Term, error) {
	if err := c.waits(c.leader.Read); err != nil {
		return membership.View{}, 0, err
	}
	return c.View(ctx)
}

// Write implements autopilot.Cluster: it begins a job.
func (c *calls) Write(_ context.Context, w *autopilot.Write) error {
	for _, id := range w.Job.Spec.Remove {
		idle := func(view membership.View) bool {
			view.Faults = membership.Faults{}
			return !view.Works(id)
		}
		c.leader.Laws.Replaces(id, !slices.ContainsFunc(c.seen, idle))
	}
	return c.outcome(func(done func(error)) { c.leader.Write(w, done) })
}

// Change implements autopilot.Cluster.
func (c *calls) Change(_ context.Context, request *consensus.ChangeRequest) error {
	return c.outcome(func(done func(error)) { c.leader.Change(request, done) })
}

// Describe implements autopilot.Finder.
func (c *calls) Describe(context.Context) (view membership.View, err error) {
	ended := c.waits(func(resume func()) {
		c.leader.Describe(func(v membership.View, failed error) {
			view, err = v, failed
			resume()
		})
	})
	return view, cmp.Or(ended, err)
}

// Sleep implements autopilot.Cluster.
func (c *calls) Sleep(_ context.Context, d time.Duration) error {
	return c.waits(func(resume func()) { c.leader.After(d, resume) })
}
