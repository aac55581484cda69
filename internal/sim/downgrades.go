package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/nextlevel"
	"github.com/quorate/quorate/internal/sim/dice"
)

// releaseOf is the release of a build, in worlds in which members go back: each level came with one.
func releaseOf(l level.Level) level.Release {
	return level.Release{Major: 1, Minor: uint32(l - level.First)}
}

// downgradePause is the mean time between two steps of the operator.
const downgradePause = 1500 * time.Millisecond

// downgrades is the operator of a world in which members go back to the former release, by etcd's Downgrade. The operator is
// careful: it lets no member go back before the downgrade has begun, and ends none while a member that went back has not
// published its build. It takes no step back while a command of its own that ends a downgrade may still be on its way.
type downgrades struct {
	run     *run
	cluster *cluster
	rng     *rand.Rand
	ending  uint64 // generation of the policy that the last command named which ends a downgrade, plus one
}

// startDowngrades makes the operator, in a world with downgrades.
func (w *World) startDowngrades(seed uint64) {
	if !w.run.plan.Downgrades {
		return
	}
	d := &downgrades{run: w.run, cluster: w.cluster, rng: dice.Stream(seed, streamDowngrades)}
	w.returns = d
	var again func()
	again = func() {
		if w.run.calm || w.run.refusing {
			return
		}
		d.step()
		w.run.After(dice.Exponential(d.rng, downgradePause), again)
	}
	w.run.After(dice.Exponential(d.rng, downgradePause), again)
}

// step does one thing while faults strike.
func (d *downgrades) step() {
	active, rise := d.run.suite.Levels()
	chance := d.rng.Float64()
	switch {
	case active >= nextlevel.Level:
	case rise.Target.IsZero() && chance < 0.3:
		d.forth()
	case rise.Target.IsZero():
		d.begin()
	case chance < 0.15:
		d.end(rise.Before)
	case chance < 0.2:
		d.end(level.Policy{Kind: level.PolicyNow})
	case chance < 0.25:
		d.finalize()
	case chance < 0.35:
		d.begin() // is refused
	case chance < 0.45:
		d.forth()
	default:
		d.back()
	}
}

// begin asks for a downgrade, if a member runs the next release.
func (d *downgrades) begin() {
	newer := func(h *host) bool { return !h.older }
	if !slices.ContainsFunc(d.cluster.members(), newer) {
		return
	}
	d.propose("begins", func(rise *level.Rise, of kv.LevelView) *kv.Command {
		if !rise.Policy.Valid() {
			return nil
		}
		hold := level.Policy{Kind: level.PolicyHold}
		return &kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: hold, Target: releaseOf(d.run.plan.Former), Of: of}}
	})
}

// end ends the downgrade by a policy: the former one, if the operator cancels.
func (d *downgrades) end(policy level.Policy) {
	if d.returning() || !policy.Valid() {
		return
	}
	d.propose("ends by "+policy.String(), func(rise *level.Rise, of kv.LevelView) *kv.Command {
		if rise.Target.IsZero() {
			return nil
		}
		d.ending = of.Generation + 1
		return &kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: policy, Of: of}}
	})
}

// finalize raises the level in the middle of a downgrade, if all members have published the next release: the operator has
// thought again.
func (d *downgrades) finalize() {
	if d.returning() {
		return
	}
	d.propose("is given up", func(rise *level.Rise, of kv.LevelView) *kv.Command {
		if rise.Target.IsZero() {
			return nil
		}
		d.ending = of.Generation + 1
		return &kv.Command{Raise: &kv.RaiseOp{Level: nextlevel.Level, Finalize: true, Of: of}}
	})
}

// propose asks through any member; f makes the command from what that member has applied, or none.
func (d *downgrades) propose(what string, f func(rise *level.Rise, of kv.LevelView) *kv.Command) {
	up := d.cluster.up()
	if len(up) == 0 {
		return
	}
	h := up[d.rng.IntN(len(up))]
	if !h.serves() {
		return
	}
	machine := h.proc.Data.Machine
	rise := machine.Rise()
	if command := f(&rise, machine.LevelView()); command != nil {
		d.run.struck("downgrade", what)
		command.By = machine.Users().ByMember()
		h.proc.Clients.Propose(command, func(kv.Result, error) {})
	}
}

// forth starts a member with the next release.
func (d *downgrades) forth() {
	for _, h := range d.cluster.members() {
		if h.older {
			d.run.struck("downgrade", fmt.Sprintf("%d goes forth", h.slot))
			upgrade(h, dice.Between(d.rng, 10*time.Millisecond, time.Second))
			return
		}
	}
}

// back starts a member with the former release, if it has published that it runs the next one: a word of its former life that
// is still on its way would come later than that of the next life.
func (d *downgrades) back() {
	active, rise := d.run.suite.Levels()
	if active >= nextlevel.Level || rise.Target.IsZero() || rise.Generation < d.ending {
		return
	}
	hosts := slices.DeleteFunc(d.cluster.members(), func(h *host) bool {
		return h.older || d.run.suite.Knows(h.id) != nextlevel.Level
	})
	if len(hosts) > 0 {
		h := hosts[d.rng.IntN(len(hosts))]
		d.run.struck("downgrade", fmt.Sprintf("%d goes back", h.slot))
		h.install(true, dice.Between(d.rng, 10*time.Millisecond, time.Second))
	}
}

// returning reports whether a member of the cluster went back and has not published that.
func (d *downgrades) returning() bool {
	config := d.run.suite.CommittedConfig()
	return slices.ContainsFunc(d.cluster.list, func(h *host) bool {
		return h.older && !h.gone && config.Contains(h.id) && d.run.suite.Knows(h.id) == nextlevel.Level
	})
}

// goesBackAndForth lets all members of a cluster that heals go back to the former release, if the level has not risen, and then
// to the next one: the downgrade must end by itself, and the level must rise.
func (w *World) goesBackAndForth() bool {
	d := w.returns
	if d == nil {
		return true
	}
	ended := func() bool {
		active, rise := w.run.suite.Levels()
		return active >= nextlevel.Level || d.allOlder() && rise.Target.IsZero()
	}
	if d.mayGoBack() && !w.operate(ended, d.goBack) {
		return w.stays("the downgrade does not end")
	}
	for _, h := range w.cluster.list {
		if h.older && !h.gone {
			upgrade(h, 0)
		}
	}
	risen := func() bool {
		active, rise := w.run.suite.Levels()
		return rise.Target.IsZero() && (active >= nextlevel.Level || !d.mustRise())
	}
	return w.operate(risen, d.endLeft) || w.stays("the level does not rise after a downgrade")
}

// operate lets an operator do something again and again, until something is so or a healthy cluster had time enough for it.
func (w *World) operate(until func() bool, act func()) bool {
	over := false
	var again func()
	again = func() {
		if !over {
			act()
			w.run.After(levelScan, again)
		}
	}
	again()
	done := w.runUntil(w.run.Now()+2*w.patience(), until)
	over = true
	return done
}

// stays reports that what must happen has not, and returns false.
func (w *World) stays(what string) bool {
	if !w.run.suite.Failed() {
		_, rise := w.run.suite.Levels()
		w.run.suite.Report("downgrade", fmt.Sprintf("%s, %v later: %+v; %s", what, 2*w.patience(), rise, w.cluster.describe()))
	}
	return false
}

// mayGoBack reports whether all members of the cluster can go back, and one of them has something to go back from.
func (d *downgrades) mayGoBack() bool {
	return d.complete() && !d.allOlder()
}

// complete reports whether all members of the cluster run, or will.
func (d *downgrades) complete() bool {
	return len(d.cluster.members()) == len(d.run.suite.CommittedConfig().IDs())
}

func (d *downgrades) allOlder() bool {
	return !slices.ContainsFunc(d.cluster.members(), func(h *host) bool { return !h.older })
}

// goBack takes the next step on the way back.
func (d *downgrades) goBack() {
	switch _, rise := d.run.suite.Levels(); {
	case rise.Target.IsZero():
		d.begin()
	case rise.Generation < d.ending: // what was asked for may still arrive
		d.end(rise.Before)
	default:
		d.back()
	}
}

// endLeft ends a downgrade that the faults left.
func (d *downgrades) endLeft() {
	if _, rise := d.run.suite.Levels(); !rise.Target.IsZero() {
		d.end(rise.Before)
	}
}

// mustRise reports whether the level must rise once all members have the next release. The last of many members always finds
// something (finds), so that no time of a soak counts; and an operator ends a hold through a follower.
func (d *downgrades) mustRise() bool {
	_, rise := d.run.suite.Levels()
	n := len(d.cluster.members())
	return d.complete() && (rise.Policy.Kind != level.PolicySoak || n < findsEvery/2) &&
		(rise.Policy.Kind != level.PolicyHold || n > 1)
}
