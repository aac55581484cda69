package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/offers"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/shell"
	"github.com/quorate/quorate/internal/sim/workload"
)

// plan is everything that a seed decides before the world begins. A seed never uses all faults at once: what a mix
// leaves out is often what lets the rest get far enough to hurt.
type plan struct {
	members int
	faults  time.Duration // phase 1
	nemeses []*nemesis
	named   []*nemesis               // likewise, those that are only named
	disks   []*nemesis               // likewise, those of identity
	gaps    map[string]time.Duration // mean time between two blows of a nemesis
	weather weather
	shell.Pace
	drift float64       // clocks run fast or slow by up to this share
	skew  time.Duration // and differ by up to twice this
	torn  bool
	lossy bool // minority stays down in phase 2
	reconfiguration
	identities
	mixed    bool // each start draws some settings anew
	fastPath offers.Setting
	raft     raft.Options
	mix      workload.Mix
	segments int64
}

// reconfiguration is what happens to the configuration.
type reconfiguration struct {
	protocols    []consensus.Protocol
	reconfigures bool // there are changes
	hits         bool // and they are hit in their middle
	jobs         bool // operators ask for jobs, and leaders repair the voters by themselves
	switchOff    bool // a removed member is switched off as soon as anybody says that it may be
}

// identities is who is who.
type identities struct {
	identity   bool          // it is in doubt: streams begin with handshakes
	founds     bool          // the members found the cluster by themselves
	byMajority bool          // as with --founding=majority
	late       time.Duration // when the last of them comes
	recovers   bool          // members are recovered, in epochs of their own
}

func drawPlan(o *Options, rng *rand.Rand) (*plan, error) {
	p := &plan{
		members: dice.Pick(rng, 1, 2, 3, 3, 3, 3, 4, 5, 5, 6, 7),
		faults:  dice.Between(rng, 10*time.Second, 60*time.Second),
		Pace: shell.Pace{
			Tick:  dice.Pick(rng, 10*time.Millisecond, 10*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond),
			Loop:  dice.Between(rng, 0, 100*time.Microsecond),
			Disk:  dice.Between(rng, 50*time.Microsecond, 5*time.Millisecond),
			Apply: dice.Between(rng, 10*time.Microsecond, time.Millisecond),
			Flush: dice.Between(rng, 500*time.Millisecond, 20*time.Second),
			Keep:  uint64(dice.Pick(rng, 0, 10, 200, 2000)),
		},
		lossy:    dice.Chance(rng, 0.3),
		gaps:     map[string]time.Duration{},
		segments: dice.Pick(rng, int64(8<<10), 64<<10, 1<<20),
	}
	if o.Members > 0 {
		p.members = o.Members
	}
	if o.Duration > 0 {
		p.faults = o.Duration
	}
	p.drawRaft(rng)
	p.mix = workload.Draw(rng)
	p.weather = weather{
		base:        dice.Between(rng, 20*time.Microsecond, 2*time.Millisecond),
		jitter:      dice.Between(rng, 10*time.Microsecond, time.Millisecond),
		noticeLoss:  dice.Pick(rng, 0, 0.1, 1),
		codecChecks: dice.Pick(rng, 0, 0.1, 1),
	}
	if err := p.drawProtocols(o, rng); err != nil {
		return nil, err
	}
	p.fastPath = drawFastPath(dice.Chance(rng, 0.6), p.raft.Seed)
	if err := p.loadOf(o); err != nil {
		return nil, err
	}
	if err := p.drawNemeses(o, rng); err != nil {
		return nil, err
	}
	p.drawDisks(o, dice.Stream(o.Seed, streamPlanIdentity))
	return p, nil
}

// LoadReads is a load of linearizable reads, with few writes on few keys between them.
const LoadReads = "reads"

// loadOf changes the drawn load to the one that was asked for. It draws nothing, so that the rest of the plan stays.
func (p *plan) loadOf(o *Options) error {
	switch o.Load {
	case "":
	case LoadReads:
		m := &p.mix
		m.Clients, m.Readers = max(m.Clients, 6), 3
		m.Keys, m.Think = min(m.Keys, 3), min(m.Think, 20*time.Millisecond)
		m.Put, m.Get, m.CAS, m.Delete, m.Txn, m.Range = 20, 80, 5, 2, 0, 0
	default:
		return fmt.Errorf("%w %q: there is %s", ErrUnknownLoad, o.Load, LoadReads)
	}
	return nil
}

// drawProtocols takes one protocol for all changes, or a few.
func (p *plan) drawProtocols(o *Options, rng *rand.Rand) error {
	p.switchOff = dice.Chance(rng, 0.6)
	names := consensus.ProtocolNames()
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:dice.Pick(rng, 1, 1, 2, 3, len(names))]
	if o.Protocol != "" {
		names = []string{o.Protocol}
	}
	for _, name := range names {
		protocol, ok := consensus.ParseProtocol(name)
		if !ok {
			return fmt.Errorf("%w %q: there are %s", ErrUnknownProtocol, name, strings.Join(consensus.ProtocolNames(), ", "))
		}
		p.protocols = append(p.protocols, protocol)
	}
	return nil
}

func (p *plan) drawRaft(rng *rand.Rand) {
	r := raft.Defaults(1)
	r.ElectionTicks, r.HeartbeatTicks = 10, 1
	if p.Tick < 50*time.Millisecond {
		r.ElectionTicks, r.HeartbeatTicks = dice.Pick(rng, 20, 50, 100), dice.Pick(rng, 2, 5, 10)
	}
	r.Seed = rng.Uint64()
	r.LeaderLease = dice.Chance(rng, 0.3)
	r.StrictReconfig = dice.Chance(rng, 0.7)
	r.MaxMessageBytes = dice.Pick(rng, 200, 4<<10, 1<<20)
	r.MaxInflightBytes = dice.Pick(rng, 1<<10, 64<<10, 32<<20)
	r.MaxInflightMessages = dice.Pick(rng, 1, 8, 256)
	r.MaxUncommittedBytes = dice.Pick(rng, 4<<10, 1<<20, 256<<20)
	if r.Seed%7 == 0 { // not drawn, and neither is the next: what follows must not depend on them
		r.MaxApplyingBytes, r.MaxUnappliedBytes, r.MaxSnapshotLogBytes = 300, 2<<10, 2<<10
	}
	p.raft = r
}

// drawNemeses takes each nemesis with one chance in three, or those that were asked for, which may be all at once.
func (p *plan) drawNemeses(o *Options, rng *rand.Rand) error {
	var asked []string
	switch o.Nemesis {
	case "", "none":
	case "all":
		for i := range nemeses {
			asked = append(asked, nemeses[i].Name)
		}
		for i := range named {
			asked = append(asked, named[i].Name)
		}
		asked = append(asked, alwaysToo...)
	default:
		asked = strings.Split(o.Nemesis, ",")
	}
	known := 0
	stream := dice.Stream(o.Seed, streamJobs)
	for i := range named {
		n := &named[i]
		gap := dice.Between(stream, n.shortest, 5*n.shortest)
		if !slices.Contains(asked, n.Name) {
			continue
		}
		known++
		p.named = append(p.named, n)
		p.gaps[n.Name] = gap
		if n.plan != nil {
			n.plan(p, nil)
		}
	}
	for i := range disks {
		if slices.Contains(asked, disks[i].Name) {
			known++
		}
	}
	for i := range nemeses {
		n := &nemeses[i]
		// Draw first, so that the rest of the plan does not depend on the restriction.
		drawn, gap := dice.Chance(rng, 0.33), dice.Between(rng, n.shortest, 5*n.shortest)
		if o.Nemesis != "" {
			drawn = slices.Contains(asked, n.Name)
		}
		if !drawn {
			continue
		}
		known++
		p.nemeses = append(p.nemeses, n)
		p.gaps[n.Name] = gap
		if n.plan != nil {
			n.plan(p, rng)
		}
	}
	if len(asked) > 0 && known < len(asked) {
		return fmt.Errorf("%w in %q: try the command list", ErrUnknownNemesis, o.Nemesis)
	}
	return nil
}

func (p *plan) String() string {
	var names []string
	for _, n := range slices.Concat(p.named, p.nemeses) {
		names = append(names, n.Name)
	}
	for _, n := range p.disks {
		names = append(names, n.Name)
	}
	if p.reconfigures {
		names = append(names, fmt.Sprintf("by %v, switched off: %t", p.protocols, p.switchOff))
	}
	return fmt.Sprintf("members=%d faults=%v tick=%v election=%d heartbeat=%d lease=%t fast-path=%s disk=%v keep=%d "+
		"clients=%d natives=%d direct=%t [%s]",
		p.members, p.faults.Round(time.Second), p.Tick, p.raft.ElectionTicks, p.raft.HeartbeatTicks, p.raft.LeaderLease,
		p.fastPath, p.Disk.Round(time.Microsecond), p.Keep, p.mix.Clients, p.mix.Natives, p.mix.Direct,
		strings.Join(names, " "))
}

// drawDisks takes faults of identity: in one seed of six that may have any, and those that were asked for.
func (p *plan) drawDisks(o *Options, rng *rand.Rand) {
	asked := strings.Split(o.Nemesis, ",")
	some := o.Nemesis == "" && o.Break == "" && dice.Chance(rng, 1.0/6)
	for i := range disks {
		n := &disks[i]
		drawn, gap := dice.Chance(rng, 0.4), dice.Between(rng, n.shortest, 5*n.shortest)
		rare := n.Name == "found-majority" || n.Name == "wipe-most" || n.Name == "recover" || n.Name == "recover-apart" ||
			n.Name == "join"
		switch {
		case o.Nemesis == "all":
			drawn = slices.Contains(alwaysToo, n.Name)
		case o.Nemesis != "":
			drawn = slices.Contains(asked, n.Name)
		default:
			drawn = some && drawn && !rare
		}
		if !drawn {
			continue
		}
		if n.Name != "mixed" {
			p.identity, p.lossy = true, false
		}
		p.disks = append(p.disks, n)
		p.gaps[n.Name] = gap
		if n.plan != nil {
			n.plan(p, rng)
		}
	}
}

// begins is when a first member starts. All but the last come about together.
func (p *plan) begins(slot int, rng *rand.Rand) time.Duration {
	switch {
	case !p.founds:
		return 0
	case slot == p.members-1:
		return p.late
	}
	return dice.Between(rng, 0, 2*time.Second)
}

// alwaysToo are the faults of identity that go with all others.
var alwaysToo = []string{"wipe", "roll-back", "clone", "wrong-address", "mixed", "join"}

// slowest is how much longer than others some members wait for a leader, if settings are mixed.
const slowest = 4

// settings draws, if settings are mixed, those of one start: how long it waits for a leader, whether it trusts a lease, whether
// and when it offers what it proposes.
func (p *plan) settings(o *raft.Options, rng *rand.Rand) offers.Setting {
	if !p.mixed {
		return p.fastPath
	}
	o.ElectionTicks = o.ElectionTicks * dice.Pick(rng, 1, 1, slowest)
	o.LeaderLease = o.LeaderLease && dice.Chance(rng, 0.7)
	return dice.Pick(rng, offers.Never, offers.Auto, offers.Always, offers.Always)
}

// drawFastPath draws when members offer what they propose to all voters.
func drawFastPath(often bool, seed uint64) offers.Setting {
	switch more := seed%10 < 7; { // not drawn: what follows must not depend on it
	case often && more:
		return offers.Always
	case often || more:
		return offers.Auto
	}
	return offers.Never
}
