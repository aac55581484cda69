package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/routines"
	"github.com/quorate/quorate/internal/sim/users"
)

// startUsers makes the operator of a world whose clients act as users.
func (w *World) startUsers() {
	r := w.run
	if !r.plan.Users {
		return
	}
	root := users.Root()
	w.root = users.NewOperator(r.users, r.suite, func(command *kv.Command, done func(kv.Result, error)) {
		all := w.cluster.up()
		if len(all) == 0 {
			return
		}
		if h := all[r.users.IntN(len(all))]; h.serves() && mayUseNext(h) {
			h.gate.Propose(root, command, done)
		}
	}, r.After)
	w.root.Begin(dice.Pick(r.users, 0, dice.Between(r.users, 0, r.plan.Faults/2)))
	r.plan.Mix.Users = w.root
	r.plan.Mix.Clients = max(r.plan.Mix.Clients, 4)
}

func (w *World) strikeUsers() {
	if what := w.root.Strike(); what != "" {
		w.run.struck("auth", what)
	}
}

// openGate opens the access control of a life.
func openGate(h *host) {
	if !h.run.plan.Users {
		return
	}
	life, proc := h.life, h.proc
	runs := func() bool { return h.alive && h.life == life }
	var err error
	h.gate, err = users.New(users.Ports{
		Machine: func() *apply.Machine { return proc.Data.Machine },
		Propose: func(command *kv.Command, done func(kv.Result, error)) (abandon func()) {
			return proc.Clients.Propose(command, done)
		},
		Read:   func(done func()) { proc.Clients.Read(done) },
		After:  h.after,
		Moment: func() time.Duration { return dice.Exponential(h.run.users, time.Millisecond) },
		Go: func(f func(wait routines.Wait)) {
			h.run.routines.Go(func(wait routines.Wait) {
				f(func(begin func(resume func())) bool { return wait(begin) && runs() })
			})
		},
		Clock:  proc.EnvClock(),
		Faults: h.run.broken.Users,
	})
	if err != nil {
		h.suite.Report("operating-error", err.Error())
	}
}

// usersGetThrough waits until every client that acts as a user was answered, or refused by a member that had asked the leader.
func (w *World) usersGetThrough() bool {
	if w.root == nil {
		return true
	}
	w.load.Expect()
	through := func() bool {
		_, stuck := w.load.Stuck()
		return !stuck
	}
	if w.runUntil(w.run.Now()+2*w.patience(), through) {
		return true
	}
	if who, stuck := w.load.Stuck(); stuck && !w.run.suite.Failed() {
		w.run.suite.Report("liveness", fmt.Sprintf("%s gets no answer after the faults: %s", who, w.cluster.describe()))
	}
	return false
}
