package plan

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/member/offers"
	"github.com/quorate/quorate/internal/sim/dice"
)

// Nemeses lists all kinds of faults.
func Nemeses() []Nemesis { return slices.Concat(nemeses, disks, named) }

var nemeses = []Nemesis{
	{"crash", "one member loses power and starts again", 2 * time.Second, nil},
	{"crash-all", "all members lose power at once", 8 * time.Second, nil},
	{"torn", "what was not synced is lost or torn at a crash, sector by sector", time.Second,
		func(p *Plan, _ *rand.Rand) { p.Torn = true }},
	{"partition", "the members fall into two halves", 3 * time.Second, nil},
	{"oneway", "one member can send but not receive, or the reverse", 3 * time.Second, nil},
	{"flap", "one link breaks and heals many times", 4 * time.Second, nil},
	{"delay", "some messages are late", time.Second, func(p *Plan, rng *rand.Rand) {
		p.Weather.Spike, p.Weather.SpikeUpTo = rng.Float64()/10, dice.Between(rng, time.Millisecond, 2*time.Second)
	}},
	{"loss", "some messages are lost", time.Second,
		func(p *Plan, rng *rand.Rand) { p.Weather.Loss = rng.Float64() / 5 }},
	{"dup", "some messages arrive twice", time.Second,
		func(p *Plan, rng *rand.Rand) { p.Weather.Dup = rng.Float64() / 5 }},
	{"reorder", "some messages overtake others", time.Second,
		func(p *Plan, rng *rand.Rand) { p.Weather.Reorder = rng.Float64() / 2 }},
	{"drift", "clocks run fast or slow", time.Second,
		func(p *Plan, rng *rand.Rand) { p.Drift = rng.Float64() / 50 }},
	{"slowdisk", "one disk becomes very slow for a while", 3 * time.Second, nil},
	{"fulldisk", "one disk is full, or fails, for a while", 6 * time.Second, nil},
	{"pause", "one member stops running for a while and goes on as if nothing had been", 3 * time.Second, nil},
	{"membership", "members are added, promoted, replaced, demoted, updated and removed, one or many at a time",
		500 * time.Millisecond, func(p *Plan, rng *rand.Rand) {
			p.Reconfigures, p.Hits = true, dice.Chance(rng, 0.5)
		}},
	{"reconfig-crash", "likewise, and always the leader or those who join are lost in the middle of it", 500 * time.Millisecond,
		func(p *Plan, _ *rand.Rand) { p.Reconfigures, p.Hits = true, true }},
	{"transfer", "leadership is handed over", time.Second, nil},
	{"compact", "logs are cut as short as possible, so that members need snapshots", time.Second,
		func(p *Plan, rng *rand.Rand) {
			p.Keep, p.Flush = 0, dice.Between(rng, 300*time.Millisecond, 2*time.Second)
			p.Mix.CompactEvery = time.Second
		}},
	{"last-word", "only one member hears the leader for a moment, and then both lose power", 3 * time.Second, nil},
	{"skew", "clocks differ, by a moment or by an hour", time.Second, func(p *Plan, rng *rand.Rand) {
		p.Skew = dice.Pick(rng, 2*time.Millisecond, 50*time.Millisecond, 5*time.Second, time.Hour)
	}},
}

// named are not drawn for ordinary worlds: they strike in worlds with all faults, and where they are named. They have a random
// stream of their own, so that a new row leaves the seeds of all other faults alone.
var named = []Nemesis{
	{"jobs", "operators ask for jobs and cancel some, machines die, and leaders replace dead voters by standbys",
		2 * time.Second,
		func(p *Plan, _ *rand.Rand) { p.Jobs, p.Reconfigures = true, true }},
	{"auth", "clients act in users' names, and root changes users, roles and passwords meanwhile",
		300 * time.Millisecond, func(p *Plan, _ *rand.Rand) { p.Users = true }},
	{"upgrade", "members begin with an earlier build and are upgraded one by one, while clients act in users' names",
		4 * time.Second, func(p *Plan, _ *rand.Rand) { p.Users, p.Upgrades = true, true }},
	{"liar", "native clients tell voters different writes under one id, on keys of others, and stamps and terms as they like",
		time.Second, func(p *Plan, _ *rand.Rand) { p.Mix.Liars, p.FastPath = 1, offers.Always }},
	{"strangers", "processes that are no members say whatever the wire allows, in greetings and at the begin of streams",
		time.Second, func(p *Plan, _ *rand.Rand) { p.Identity, p.Lossy = true, false }},
	{"impatient", "operators take a member that reboots for lost, and want another one in its place", 4 * time.Second,
		func(p *Plan, _ *rand.Rand) { p.Jobs, p.Reconfigures = true, true }},
	{"overwrite", "a slow disk is at work on entries that a new leader replaces meanwhile", 4 * time.Second, nil},
	{"dates", "members have dates hours or days apart, and leaders a bound on what they do by themselves", 4 * time.Second,
		func(p *Plan, rng *rand.Rand) {
			p.Dates = dice.Pick(rng, 3*time.Hour, 48*time.Hour)
			p.CareBudget = dice.Pick(rng, 0, 1)
		}},
	{"narrow", "some links, or all, carry few bytes a second for a while, and some writes are large", 3 * time.Second,
		func(p *Plan, _ *rand.Rand) { p.drawNarrow() }},
	{"move", "members, also a majority at once, start at other addresses while others are down, and others answer there",
		6 * time.Second, func(p *Plan, _ *rand.Rand) { p.drawAddresses() }},
	{"mistype", "operators, and those who start members, write wrong peer URLs", 3 * time.Second,
		func(p *Plan, _ *rand.Rand) { p.drawAddresses() }},
	{"hung-store", "the store of one member applies nothing for a while, and its disk works", 6 * time.Second, nil},
	{"limits", "an operator sets, changes, counts and ends limits, and their quotas refuse writes", 300 * time.Millisecond,
		func(p *Plan, _ *rand.Rand) { p.Refuses = true }},
	{"audit", "operators set the policy of the audit, and members tell heads of their records", 300 * time.Millisecond, nil},
	{"backup", "members ship a backup, and its places are slow, hang, are full, refuse, lose answers and are late with lists",
		3 * time.Second, func(p *Plan, _ *rand.Rand) { p.Ships = true }},
}

// disks are the faults of identity. They have a random stream of their own, so that the seeds of other faults keep their
// meaning, and they are drawn rarely: with them every stream begins with a handshake and every disk has a name.
var disks = []Nemesis{
	{"wipe", "a member loses its disk, and the operator resets it later", 4 * time.Second, nil},
	{"roll-back", "an older copy of its disk is put back under a member", 4 * time.Second, nil},
	{"forget", "a copy of its disk that was made a moment ago, while it ran, is put back under a member", 3 * time.Second, nil},
	{"clone", "a copy of a member's disk is started beside it, or in another's place", 4 * time.Second, nil},
	{"wrong-address", "the address of a member leads to another one for a while", 3 * time.Second, nil},
	{"found", "the members found the cluster by themselves, one comes late, and some crash or lose their disks meanwhile",
		500 * time.Millisecond,
		func(p *Plan, rng *rand.Rand) { p.Founds, p.Late = true, dice.Between(rng, 0, 15*time.Second) }},
	{"found-majority", "the same without losses, as with --founding=majority", time.Second, func(p *Plan, rng *rand.Rand) {
		p.Founds, p.ByMajority, p.Late = true, true, dice.Between(rng, 0, 15*time.Second)
	}},
	{"mixed", "each start of a member draws its election timeout, lease and ways to write anew", time.Second,
		func(p *Plan, _ *rand.Rand) { p.Mixed = true }},
	{"wipe-most", "all members but one lose their disks: the cluster must refuse to serve", 3 * time.Second,
		nil},
	{"recover", "a majority is lost for good, a survivor is recovered, and some of the others come back", 3 * time.Second,
		inEpochs},
	{"recover-apart", "the same, and two survivors are recovered apart", 3 * time.Second, inEpochs},
	{"recover-by-mistake", "a member is recovered while the majority serves", 8 * time.Second, inEpochs},
	{"join", "processes join by themselves, also in place of members that are dead or work, and lose answers and disks",
		2 * time.Second, func(p *Plan, _ *rand.Rand) { p.Jobs, p.Reconfigures = true, true }},
	{"other-history", "a member that is left of another cluster with the same id starts in the place of one", 2 * time.Second,
		nil},
}

func inEpochs(p *Plan, _ *rand.Rand) { p.Recovers = true }
