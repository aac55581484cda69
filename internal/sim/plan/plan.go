package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/offers"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/shell"
	"github.com/quorate/quorate/internal/sim/workload"
)

// Plan is everything that a seed decides before the world begins. A seed never uses all faults at once: what a mix
// leaves out is often what lets the rest get far enough to hurt.
type Plan struct {
	Members int
	Faults  time.Duration // phase 1
	Nemeses []*Nemesis
	Named   []*Nemesis               // likewise, those that are only named
	Disks   []*Nemesis               // likewise, those of identity
	Gaps    map[string]time.Duration // mean time between two blows of a nemesis
	Weather Weather
	shell.Pace
	Drift float64       // clocks run fast or slow by up to this share
	Skew  time.Duration // and differ by up to twice this
	Torn  bool
	Lossy bool // minority stays down in phase 2
	Reconfiguration
	Identities
	Levels
	Users    bool // clients act in users' names
	Mixed    bool // each start draws some settings anew
	FastPath offers.Setting
	Delay    time.Duration // of commits, as --commit-delay
	Raft     raft.Options
	Mix      workload.Mix
	Segments int64
	Queue    Queue
}

// Queue bounds what waits for a stream of a narrow link, as transport.Queue.
type Queue struct{ Messages, Bytes int }

// Reconfiguration is what happens to the configuration.
type Reconfiguration struct {
	Protocols    []consensus.Protocol
	Reconfigures bool // there are changes
	Hits         bool // and they are hit in their middle
	Jobs         bool // operators ask for jobs, and leaders repair the voters by themselves
	// Dates is by how much what members take for the date differs, up to twice this, and CareBudget is how many jobs a leader
	// may begin by itself within an hour; zero: any number.
	Dates      time.Duration
	CareBudget int
	Addresses  bool // members move, or operators mistype where they are
	SwitchOff  bool // a removed member is switched off as soon as anybody says that it may be
}

// Levels is which builds the members have. All have the one that ships, unless Rises.
type Levels struct {
	Rises    bool // members have a build of the next level (package nextlevel), say so, and leaders raise the active one
	Older    bool // but some of the first have the build that ships
	Upgrades bool // these are upgraded
	Parts    bool // leases with more than one or two keys end in parts
}

// Identities is who is who.
type Identities struct {
	Identity   bool          // it is in doubt: streams begin with handshakes
	Founds     bool          // the members found the cluster by themselves
	ByMajority bool          // as with --founding=majority
	Late       time.Duration // when the last of them comes
	Recovers   bool          // members are recovered, in epochs of their own
}

// Nemesis is one kind of fault.
type Nemesis struct {
	Name, About string
	shortest    time.Duration                 // least mean pause between two blows
	plan        func(p *Plan, rng *rand.Rand) // sets what lasts for the whole first phase
}

// Weather is how bad the network is, as shares and times.
type Weather struct {
	Base, Jitter            time.Duration
	Loss, Dup, Reorder      float64
	Spike                   float64 // share of messages that are late by up to SpikeUpTo
	SpikeUpTo               time.Duration
	NoticeLoss, CodecChecks float64
}

// drawNarrow sets how much is written in a world of narrow links, and how much of it may wait for one. It draws nothing, so
// that the rest of the plan stays.
func (p *Plan) drawNarrow() {
	kind := p.Raft.Seed / 1024
	p.Mix.Bulk = []int{0, 200, 1000, 4000}[kind%4]
	p.Queue = []Queue{{64, 16 << 10}, {8192, 64 << 10}, {8192, 64 << 20}}[kind/4%3]
}

// drawAddresses makes a world in which addresses matter. It draws nothing, so that the rest of the plan stays.
func (p *Plan) drawAddresses() {
	p.Jobs, p.Reconfigures, p.Addresses = true, true, true
	p.Identity, p.Lossy = true, false
}

// Begins is when a first member starts. All but the last come about together.
func (p *Plan) Begins(slot int, rng *rand.Rand) time.Duration {
	switch {
	case !p.Founds:
		return 0
	case slot == p.Members-1:
		return p.Late
	}
	return dice.Between(rng, 0, 2*time.Second)
}

func (p *Plan) String() string {
	var names []string
	for _, n := range slices.Concat(p.Named, p.Nemeses) {
		names = append(names, n.Name)
	}
	for _, n := range p.Disks {
		names = append(names, n.Name)
	}
	if p.Reconfigures {
		names = append(names, fmt.Sprintf("by %v, switched off: %t", p.Protocols, p.SwitchOff))
	}
	return fmt.Sprintf("members=%d faults=%v tick=%v election=%d heartbeat=%d lease=%t fast-path=%s delay=%v disk=%v keep=%d "+
		"clients=%d natives=%d direct=%t levels=%t older=%t parts=%t [%s]",
		p.Members, p.Faults.Round(time.Second), p.Tick, p.Raft.ElectionTicks, p.Raft.HeartbeatTicks, p.Raft.LeaderLease,
		p.FastPath, p.Delay, p.Disk.Round(time.Microsecond), p.Keep, p.Mix.Clients, p.Mix.Natives, p.Mix.Direct,
		p.Rises, p.Older, p.Parts,
		strings.Join(names, " "))
}

// Slowest is how much longer than others some members wait for a leader, if settings are mixed.
const Slowest = 4

// Settings draws, if settings are mixed, those of one start: how long it waits for a leader, whether it trusts a lease, whether
// and when it offers what it proposes.
func (p *Plan) Settings(o *raft.Options, rng *rand.Rand) offers.Setting {
	if !p.Mixed {
		return p.FastPath
	}
	o.ElectionTicks = o.ElectionTicks * dice.Pick(rng, 1, 1, Slowest)
	o.LeaderLease = o.LeaderLease && dice.Chance(rng, 0.7)
	return dice.Pick(rng, offers.Never, offers.Auto, offers.Always, offers.Always)
}
