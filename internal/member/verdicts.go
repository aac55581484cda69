package member

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/peercall"
	"github.com/quorate/quorate/internal/member/raising"
)

const (
	// verdictInterval is how often a leader asks the members what they find, while a level may rise.
	verdictInterval = 2 * time.Second
	verdictPatience = 3 * time.Second
)

// verdicts tells other members what this one finds, and asks them, while this member leads: no time counts towards the next
// feature level while a member finds something wrong (package raising). A member that lies holds the level back, and can do no
// more; so can one that does not publish its level, and clients that make all members slow.
type verdicts struct {
	own    func() raising.Verdict // nil: there is no doctor
	config *appliedConfig
	leader *lanes.KnownLeader
	caller *peercall.Caller
	status func() raft.Status
	clock  env.Clock

	mu    sync.Mutex
	heard raising.Verdicts
}

// pausedAnswer is why no time counts towards the next level.
type pausedAnswer struct {
	Why string `json:"why,omitempty"` // empty: time counts
}

func (v *verdicts) serve(t *peercall.Table) {
	peercall.Serve(t, &methodVerdict, func(context.Context, peercall.Nothing) (raising.Verdict, error) {
		return v.ofSelf(), nil
	})
	peercall.Serve(t, &methodPaused, func(context.Context, peercall.Nothing) (answer pausedAnswer, err error) {
		if !v.leader.Leads() {
			return answer, ErrNotLeader
		}
		status := v.status()
		machine, release := v.config.stores.Machine()
		defer release()
		answer.Why = v.paused(machine, &status)
		return answer, nil
	})
}

// soaks reports whether time counts towards the next level while nothing is wrong. Under a hold it counts, too: the policy may
// become a soak.
func soaks(machine *apply.Machine) bool { return machine.CommonLevel() > machine.ActiveLevel() }

func (v *verdicts) ofSelf() raising.Verdict {
	if v.own == nil {
		return raising.Verdict{Judged: true}
	}
	return v.own()
}

// paused says why no time counts now; empty: it counts, or there is no level that it would count for.
func (v *verdicts) paused(machine *apply.Machine, status *raft.Status) string {
	if !soaks(machine) {
		return ""
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return raising.Paused(status, len(machine.Alarms()), &v.heard, v.clock.Now(), v.config.nameOf)
}

// run is the goroutine that asks.
func (v *verdicts) run(ctx context.Context) error {
	return lookEvery(ctx, verdictInterval, func() {
		machine, release := v.config.stores.Machine()
		rises := soaks(machine)
		release()
		if rises && v.leader.Leads() {
			v.ask(ctx)
		}
	})
}

// ask asks all members at once.
func (v *verdicts) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, verdictPatience)
	defer cancel()
	config := v.config.now()
	ids, asked := config.IDs(), v.clock.Now()
	v.note(ids, v.leader.Self(), v.ofSelf(), asked)
	var asking sync.WaitGroup
	for _, id := range ids {
		if id == v.leader.Self() {
			continue
		}
		asking.Go(func() {
			if said, err := peercall.Ask(ctx, v.caller, id, &methodVerdict, peercall.Nothing{}); err == nil {
				v.note(ids, id, said, asked)
			}
		})
	}
	asking.Wait()
}

func (v *verdicts) note(ids []consensus.MemberID, of consensus.MemberID, verdict raising.Verdict, asked time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.heard.Note(ids, of, verdict, asked)
}

// SoakPausedBy asks the leader why no time counts towards the next feature level; empty: it counts, or none is to rise.
func (m *Member) SoakPausedBy(ctx context.Context) (string, error) {
	answer, err := peercall.AtLeader(ctx, m.verdicts.caller, &methodPaused, peercall.Nothing{})
	return answer.Why, err
}
