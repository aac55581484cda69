package plan

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/offers"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/shell"
	"github.com/quorate/quorate/internal/sim/workload"
)

// Errors of Draw, for unknown names.
var (
	ErrUnknownNemesis  = errors.New("sim: unknown nemesis")
	ErrUnknownProtocol = errors.New("sim: unknown protocol")
	ErrUnknownLoad     = errors.New("sim: unknown load")
)

// Options say what to draw. The streams decide all fields that are zero.
type Options struct {
	Members  int
	Duration time.Duration // of the first phase
	Nemesis  string        // names of faults, separated by commas; "none" for none; empty: drawn
	Protocol string        // protocol of all membership changes; empty: drawn
	Load     string        // LoadReads; empty: drawn
	Broken   bool          // a law is broken on purpose: faults of identity are not drawn
}

// Streams are the random streams of a seed that a plan is drawn from.
type Streams struct{ Plan, Identity, Named *rand.Rand }

// Draw draws the plan of a seed. The error says which name in o is unknown.
func Draw(o *Options, streams Streams) (*Plan, error) {
	rng := streams.Plan
	p := &Plan{
		Members: dice.Pick(rng, 1, 2, 3, 3, 3, 3, 4, 5, 5, 6, 7),
		Faults:  dice.Between(rng, 10*time.Second, 60*time.Second),
		Pace: shell.Pace{
			Tick:  dice.Pick(rng, 10*time.Millisecond, 10*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond),
			Loop:  dice.Between(rng, 0, 100*time.Microsecond),
			Disk:  dice.Between(rng, 50*time.Microsecond, 5*time.Millisecond),
			Apply: dice.Between(rng, 10*time.Microsecond, time.Millisecond),
			Flush: dice.Between(rng, 500*time.Millisecond, 20*time.Second),
			Keep:  uint64(dice.Pick(rng, 0, 10, 200, 2000)),
		},
		Lossy:    dice.Chance(rng, 0.3),
		Gaps:     map[string]time.Duration{},
		Segments: dice.Pick(rng, int64(8<<10), 64<<10, 1<<20),
	}
	if o.Members > 0 {
		p.Members = o.Members
	}
	if o.Duration > 0 {
		p.Faults = o.Duration
	}
	p.drawRaft(rng)
	p.Mix = workload.Draw(rng)
	p.Weather = Weather{
		Base:        dice.Between(rng, 20*time.Microsecond, 2*time.Millisecond),
		Jitter:      dice.Between(rng, 10*time.Microsecond, time.Millisecond),
		NoticeLoss:  dice.Pick(rng, 0, 0.1, 1),
		CodecChecks: dice.Pick(rng, 0, 0.1, 1),
	}
	if err := p.drawProtocols(o, rng); err != nil {
		return nil, err
	}
	p.FastPath = drawFastPath(dice.Chance(rng, 0.6), p.Raft.Seed)
	if err := p.loadOf(o); err != nil {
		return nil, err
	}
	if err := p.drawNemeses(o, streams); err != nil {
		return nil, err
	}
	p.drawDisks(o, streams.Identity)
	p.drawLevels()
	// Worlds with named nemeses stay as they were: negative controls depend on their seeds.
	unnamed := o.Nemesis == "" || o.Nemesis == "all"
	p.drawDowngrades(unnamed)
	p.drawQuotas(o.Nemesis == "all")
	p.Parts = unnamed && p.Raft.Seed/512%2 == 1
	p.Asks = unnamed || p.Upgrades
	p.Ships = p.Ships || o.Nemesis == "" && !p.Recovers && p.Raft.Seed/(1<<41)%3 == 1
	p.drawDelay()
	return p, nil
}

// drawDelay makes leaders wait for more proposals in half of the worlds, in one of four so long that they often do. It draws
// nothing, so that the rest of the plan stays.
func (p *Plan) drawDelay() {
	switch p.Raft.Seed / 128 % 4 {
	case 1:
		p.Delay = 4 * time.Millisecond
	case 3:
		p.Delay = 100 * time.Millisecond
	}
}

// drawLevels makes the active level rise in seven worlds of eight, and gives some of the first members an earlier build in
// three of these, unless clients act as users, which needs the next level. It draws nothing, so that the rest of the plan
// stays.
func (p *Plan) drawLevels() {
	kind := p.Raft.Seed / 16 % 8
	p.Rises = p.Users || kind > 0
	p.Older = p.Upgrades || kind > 4 && !p.Users
	p.Moments = p.Raft.Seed/(1<<40)%2 > 0
	p.Former = [...]level.Level{level.Own, level.First}[p.Raft.Seed/(1<<39)%2] // a bit of its own: beside each policy
	p.LevelPolicy = [...]level.Policy{{Kind: level.PolicyNow}, {Kind: level.PolicyHold}, {Kind: level.PolicySoak, Seconds: 1},
		{Kind: level.PolicySoak, Seconds: 4}}[p.Raft.Seed/256%4]
}

// drawDowngrades lets members go back to the former release in three of four worlds with the named fault upgrade, and in one of
// four with all faults, unless members are recovered: a recovered cluster may have lost that its operator wanted it, and the
// operator does not know that. It draws nothing, so that the rest of the plan stays.
func (p *Plan) drawDowngrades(unnamed bool) {
	one := p.Raft.Seed/(1<<20)%4 == 0
	p.Downgrades = p.Upgrades && !p.Recovers && one == unnamed
}

// quotaBulk is the size of some values where quotas refuse, so that values grow and shrink.
const quotaBulk = 40

// drawQuotas leaves one half of the worlds with all faults as they were before quotas refused writes, and before there were
// commands of the audit: tests depend on their seeds. It draws nothing, so that the rest of the plan stays.
func (p *Plan) drawQuotas(all bool) {
	if all && p.Raft.Seed/(1<<41)%2 == 0 {
		p.Refuses = false
		p.Named = slices.DeleteFunc(p.Named, func(n *Nemesis) bool { return n.Name == "audit" })
	}
	if p.Refuses {
		p.Mix.Bulk = max(p.Mix.Bulk, quotaBulk)
	}
}

// LoadReads is a load of linearizable reads, with few writes on few keys between them.
const LoadReads = "reads"

// loadOf replaces the drawn load by the requested one. It draws nothing, so that the rest of the plan stays.
func (p *Plan) loadOf(o *Options) error {
	switch o.Load {
	case "":
	case LoadReads:
		m := &p.Mix
		m.Clients, m.Readers = max(m.Clients, 6), 3
		m.Keys, m.Think = min(m.Keys, 3), min(m.Think, 20*time.Millisecond)
		m.Put, m.Get, m.CAS, m.Delete, m.Txn, m.Range = 20, 80, 5, 2, 0, 0
	default:
		return fmt.Errorf("%w %q: there is %s", ErrUnknownLoad, o.Load, LoadReads)
	}
	return nil
}

// drawProtocols chooses one protocol for all changes, or a few.
func (p *Plan) drawProtocols(o *Options, rng *rand.Rand) error {
	p.SwitchOff = dice.Chance(rng, 0.6)
	names := consensus.ProtocolNames()
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:dice.Pick(rng, 1, 1, 2, 3, len(names))]
	if o.Protocol != "" {
		names = []string{o.Protocol}
	}
	for _, name := range names {
		if err := consensus.RefuseExperiment(name); err != nil {
			return err
		}
		protocol, ok := consensus.ParseProtocol(name)
		if !ok {
			return fmt.Errorf("%w %q: there are %s", ErrUnknownProtocol, name, strings.Join(consensus.ProtocolNames(), ", "))
		}
		p.Protocols = append(p.Protocols, protocol)
	}
	return nil
}

func (p *Plan) drawRaft(rng *rand.Rand) {
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
	if r.Seed%7 == 0 { // neither this nor the next is drawn: later draws must not depend on them
		r.MaxApplyingBytes, r.MaxUnappliedBytes, r.MaxSnapshotLogBytes = 300, 2<<10, 2<<10
	}
	p.Raft = r
}

// drawNemeses takes each nemesis with one chance in three, or the requested ones, which may be all at once.
func (p *Plan) drawNemeses(o *Options, streams Streams) error {
	var asked []string
	switch o.Nemesis {
	case "", "none":
	case "all":
		for i := range nemeses {
			asked = append(asked, nemeses[i].Name)
		}
		for i := range named {
			if !slices.Contains(notInAll, named[i].Name) &&
				(recoveryOf(p.Raft.Seed) == "" || !slices.Contains(notWithRecovery, named[i].Name)) {
				asked = append(asked, named[i].Name)
			}
		}
		asked = append(asked, alwaysToo...)
	default:
		asked = strings.Split(o.Nemesis, ",")
	}
	known := 0
	for i := range named {
		n := &named[i]
		gap := dice.Between(streams.Named, n.shortest, 5*n.shortest)
		if !slices.Contains(asked, n.Name) {
			continue
		}
		known++
		p.Named = append(p.Named, n)
		p.Gaps[n.Name] = gap
		if n.plan != nil {
			n.plan(p, streams.Named) // only the last row draws: no other row depends on which ones are requested
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
		drawn, gap := dice.Chance(streams.Plan, 0.33), dice.Between(streams.Plan, n.shortest, 5*n.shortest)
		if o.Nemesis != "" {
			drawn = slices.Contains(asked, n.Name)
		}
		if !drawn {
			continue
		}
		known++
		p.Nemeses = append(p.Nemeses, n)
		p.Gaps[n.Name] = gap
		if n.plan != nil {
			n.plan(p, streams.Plan)
		}
	}
	if len(asked) > 0 && known < len(asked) {
		return fmt.Errorf("%w in %q: try the command list", ErrUnknownNemesis, o.Nemesis)
	}
	return nil
}

// drawDisks takes faults of identity: in one seed of six in which they are allowed, and the requested ones.
func (p *Plan) drawDisks(o *Options, rng *rand.Rand) {
	asked := strings.Split(o.Nemesis, ",")
	some := o.Nemesis == "" && !o.Broken && dice.Chance(rng, 1.0/6)
	for i := range disks {
		n := &disks[i]
		drawn, gap := dice.Chance(rng, 0.4), dice.Between(rng, n.shortest, 5*n.shortest)
		rare := n.Name == "found-majority" || n.Name == "wipe-most" || n.Name == "recover" || n.Name == "recover-apart" ||
			n.Name == "join" || n.Name == "other-history"
		switch {
		case o.Nemesis == "all":
			drawn = slices.Contains(alwaysToo, n.Name) || n.Name == recoveryOf(p.Raft.Seed)
		case o.Nemesis != "":
			drawn = slices.Contains(asked, n.Name)
		default:
			drawn = some && drawn && !rare
		}
		if !drawn {
			continue
		}
		if n.Name != "mixed" {
			p.Identity, p.Lossy = true, false
		}
		p.Disks = append(p.Disks, n)
		p.Gaps[n.Name] = gap
		if n.plan != nil {
			n.plan(p, rng)
		}
	}
}

// notInAll are the named faults that do not go with all others: impatient sends requests that are refused, and other faults
// cover the rest of what it does.
var notInAll = []string{"impatient"}

// notWithRecovery are the named faults that do not go with a fault of recovery: two halves that have moved and were recovered
// separately do not find each other's addresses, so that no alarm can report it.
var notWithRecovery = []string{"move", "mistype", "backup"}

// alwaysToo are the faults of identity that go with all others.
var alwaysToo = []string{"wipe", "roll-back", "clone", "wrong-address", "mixed", "join"}

// recoveryOf returns the fault of recovery of a seed of "all". Most seeds have none, because the cluster that it strikes ends,
// or serves on without a member. It is not drawn: later draws must not depend on it.
func recoveryOf(seed uint64) string {
	names := []string{"recover", "recover-apart", "recover-by-mistake"}
	if at := seed % 10; at < uint64(len(names)) {
		return names[at]
	}
	return ""
}

// drawFastPath draws when members offer their proposals to all voters.
func drawFastPath(often bool, seed uint64) offers.Setting {
	switch more := seed%10 < 7; { // not drawn: later draws must not depend on it
	case often && more:
		return offers.Always
	case often || more:
		return offers.Auto
	}
	return offers.Never
}
