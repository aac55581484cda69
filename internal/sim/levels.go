package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/nextlevel"
	"github.com/quorate/quorate/internal/member/raising"
	"github.com/quorate/quorate/internal/sim/dice"
)

// levelScan is how often a member checks whether its level is published, and whether the active one may rise.
const levelScan = 300 * time.Millisecond

// drawBuild draws the build of a first member, in a world with earlier builds. The first member has an earlier one.
func drawBuild(h *host) {
	h.older = h.run.plan.Older && (h.slot == 0 || dice.Chance(h.run.users, 0.7))
}

// knowsLevel is the level of a machine's build: that of the build that ships, in worlds without the next one.
func (h *host) knowsLevel() level.Level {
	switch {
	case h.older:
		return h.run.plan.Former
	case h.run.plan.Rises:
		return nextlevel.Level
	}
	return level.Own
}

// build is the text of this life's build, where it counts: in worlds in which members go back to a former release.
func (h *host) build() string {
	if !h.run.plan.Downgrades {
		return ""
	}
	return releaseOf(h.knowsLevel()).String() + ".0"
}

// keepLevel publishes the level of this life's build, and, on the leader, raises the active level by the policy, as package
// member does. It proposes nothing more before its last command has a result, so that proposals do not pile up in a cluster
// without a leader.
func keepLevel(h *host) {
	waits := false
	raiser := raising.Raiser{Hasty: h.run.broken.HastyLevel, Heedless: h.run.broken.IgnoreFindings}
	verdicts := raising.Verdicts{Lasts: verdictLasts}
	var look func()
	look = func() {
		hearVerdicts(h, &verdicts)
		if command, due := levelCommand(h, &raiser, &verdicts); due && !waits {
			waits = true
			h.proc.Clients.Propose(&command, func(kv.Result, error) { waits = false })
		}
		h.after(levelScan, look)
	}
	look()
}

// levelCommand returns the next command about levels.
func levelCommand(h *host, raiser *raising.Raiser, verdicts *raising.Verdicts) (command kv.Command, due bool) {
	machine := h.proc.Data.Machine
	published, _ := machine.Published(h.id)
	own, common, rise := machine.OwnLevel(), machine.CommonLevel(), machine.Rise()
	if h.run.broken.LevelStays {
		common = machine.ActiveLevel()
	}
	switch {
	case !h.serves():
		raiser.Rest()
	case published.Level != own:
		raiser.Rest()
		command.Publish, due = &kv.PublishOp{Member: uint64(h.id), Level: own, Build: h.build()}, true
	case h.leads():
		status := h.proc.Node.Replica().Status()
		command, due = raiser.Look(h.monotonic(), &raising.View{Active: machine.ActiveLevel(), Common: common, Rise: rise,
			Members: machine.LevelView(), AllPublished: len(machine.HeldBack(level.First)) == 0,
			Flag:     h.run.plan.LevelPolicy,
			Returned: machine.HasReturned() && !h.run.broken.DowngradeStays,
			Paused:   raising.Paused(&status, len(machine.Alarms()), verdicts, h.monotonic(), consensus.MemberID.String)})
	default:
		raiser.Rest()
		// The operator, through any member; not while members go back.
		if rise.Policy.Kind == level.PolicyHold && rise.Target.IsZero() && common > machine.ActiveLevel() {
			command.Raise, due = &kv.RaiseOp{Level: common, Finalize: true, Of: machine.LevelView()}, true
		}
	}
	return command, due
}

// mayUseNext reports whether commands of the next level may be proposed here, as package member asks before it proposes one.
func mayUseNext(h *host) bool {
	return h.proc.Data.Machine.ActiveLevel() >= nextlevel.Level || h.run.broken.Apply.Ungated
}

// strikeUpgrade starts a member with the next build, in the middle of its work.
func (f *faults) strikeUpgrade() {
	for _, h := range f.cluster.list {
		if h.older && !h.gone {
			f.run.struck("upgrade", fmt.Sprint(h.slot))
			upgrade(h, dice.Between(f.run.users, 10*time.Millisecond, 2*time.Second))
			return
		}
	}
}

// upgrade ends the process, and starts it with the next build a while later.
func upgrade(h *host, later time.Duration) { h.install(false, later) }

// install ends the process, and starts it with another build a while later.
func (h *host) install(older bool, later time.Duration) {
	h.older = older
	if h.alive {
		h.crash()
		h.startAfter(later)
	}
}
