package plan

import (
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

// Plan is everything that a seed decides before the world begins. Unless it is asked to, a seed never uses all faults at
// once: the faults that a mix leaves out would often keep the others from going far enough to do damage.
type Plan struct {
	Members int
	Faults  time.Duration // phase 1
	Nemeses []*Nemesis
	Named   []*Nemesis               // chosen faults of named
	Disks   []*Nemesis               // chosen faults of disks
	Gaps    map[string]time.Duration // mean time between two strikes of a nemesis
	Weather Weather
	shell.Pace
	Drift float64       // clocks run fast or slow by up to this share
	Skew  time.Duration // and differ by up to twice this
	Torn  bool
	Lossy bool // a minority stays down in phase 2
	Reconfiguration
	Identities
	Levels
	Users    bool // clients act as users
	Ships    bool // members ship a backup
	Mixed    bool // each start draws some settings anew
	FastPath offers.Setting
	Delay    time.Duration // of commits, as --commit-delay
	Raft     raft.Options
	Mix      workload.Mix
	Segments int64
	Queue    Queue
}

// Queue bounds the messages that wait for a stream of a narrow link, as transport.Queue.
type Queue struct{ Messages, Bytes int }

// Reconfiguration says how the configuration changes.
type Reconfiguration struct {
	Protocols    []consensus.Protocol
	Reconfigures bool // there are changes
	Hits         bool // faults strike in the middle of changes
	Jobs         bool // operators ask for jobs, and leaders repair the voters by themselves
	// Dates is by how much the members' wall clocks differ, up to twice this, and CareBudget is how many jobs a leader may
	// begin by itself within an hour; zero: any number.
	Dates      time.Duration
	CareBudget int
	Addresses  bool // members move, or operators mistype their addresses
	SwitchOff  bool // a removed member is switched off as soon as a member reports that it may be
}

// Levels says which builds the members have. All have the one that ships, unless Rises.
type Levels struct {
	Rises       bool         // members have a build of the next level (package nextlevel), and leaders raise the active level
	Older       bool         // but some of the first have an earlier build
	Former      level.Level  // that the earlier build knows: of the build that ships, or of the first release
	Moments     bool         // leaders note the time
	Upgrades    bool         // these are upgraded
	Downgrades  bool         // and an operator lets members go back, by etcd's Downgrade
	Asks        bool         // leaders ask over the network what members find, else they know it at once
	LevelPolicy level.Policy // if it is hold, an operator raises the active level
	Parts       bool         // leases with more than one or two keys end in parts
	Refuses     bool         // there are quotas that refuse writes
}

// Identities says how members are identified and founded.
type Identities struct {
	Identity   bool          // identities are in doubt: streams begin with handshakes
	Founds     bool          // the members found the cluster by themselves
	ByMajority bool          // as with --founding=majority
	Late       time.Duration // when the last of them starts
	Recovers   bool          // members are recovered, in epochs of their own
}

// Nemesis is one kind of fault.
type Nemesis struct {
	Name, About string
	shortest    time.Duration                 // least mean pause between two strikes
	plan        func(p *Plan, rng *rand.Rand) // sets the fields that last for the whole first phase
}

// Weather is the quality of the network, as shares and times.
type Weather struct {
	Base, Jitter            time.Duration
	Loss, Dup, Reorder      float64
	Spike                   float64 // share of messages that are late by up to SpikeUpTo
	SpikeUpTo               time.Duration
	NoticeLoss, CodecChecks float64
}

// drawNarrow sets the amount of writes in a world of narrow links, and the amount that may wait for a link. It draws nothing,
// so that the rest of the plan stays.
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

// Begins is when a first member starts. All but the last one start at about the same time.
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
	if p.Downgrades {
		names = append(names, "and back")
	}
	if p.Reconfigures {
		names = append(names, fmt.Sprintf("by %v, switched off: %t", p.Protocols, p.SwitchOff))
	}
	return fmt.Sprintf("members=%d faults=%v tick=%v election=%d heartbeat=%d lease=%t fast-path=%s delay=%v disk=%v keep=%d "+
		"clients=%d natives=%d direct=%t levels=%t older=%t former=%d level-policy=%v parts=%t [%s]",
		p.Members, p.Faults.Round(time.Second), p.Tick, p.Raft.ElectionTicks, p.Raft.HeartbeatTicks, p.Raft.LeaderLease,
		p.FastPath, p.Delay, p.Disk.Round(time.Microsecond), p.Keep, p.Mix.Clients, p.Mix.Natives, p.Mix.Direct,
		p.Rises, p.Older, p.Former, p.LevelPolicy, p.Parts,
		strings.Join(names, " "))
}

// Slowest is how many times as long as others some members wait for a leader, if settings are mixed.
const Slowest = 4

// Settings draws, if settings are mixed, those of one start: how long it waits for a leader, whether it trusts a lease, and
// whether and when it offers its proposals.
func (p *Plan) Settings(o *raft.Options, rng *rand.Rand) offers.Setting {
	if !p.Mixed {
		return p.FastPath
	}
	o.ElectionTicks = o.ElectionTicks * dice.Pick(rng, 1, 1, Slowest)
	o.LeaderLease = o.LeaderLease && dice.Chance(rng, 0.7)
	return dice.Pick(rng, offers.Never, offers.Auto, offers.Always, offers.Always)
}
