package tally

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/sim/workload"
)

// Counts are the counts of one or more runs.
type Counts struct {
	World
	Clients
	FastPath
	Changes
	Identity
	Backups
	Faults map[string]uint64 // by nemesis
}

// World counts the events of the members and the network.
type World struct {
	Events, Steps, Messages, Dropped, Duplicated    uint64
	Overflowed                                      uint64 // of Dropped, those that found their queue full
	Sent, Again, InVain                             uint64 // bytes of entries, see check.SentOnce
	Applied, Elections, Starts, Failures, Snapshots uint64
	Duplicates                                      uint64 // entries that repeated a proposal
	Gathered                                        uint64 // steps after which proposals waited for more
}

// Clients counts requests and answers.
type Clients struct {
	Ops, Answered, Unanswered, Refused, Watched, Renewed uint64
	Denied                                               uint64 // for want of permission
	OverQuota                                            uint64 // refused by quotas
	LeaseParts                                           uint64 // of leases that ended in more than one
	// Waited counts messages of native clients that waited for room, a turn or the budget of offers, SentAway streams ended
	// for want of memory or because their client did not read.
	Waited, SentAway uint64
}

// FastPath counts proposals by their outcome.
type FastPath struct {
	Inferred        uint64 // found committed by counting acknowledgements
	Fast, FastTried uint64 // decided by a superquorum, of those that were offered
	Stamped         uint64 // offers with a stamp
	Direct          uint64 // of Fast, decided for native clients
	Skipped         uint64 // entries whose exact revision had passed
	Recovered       uint64 // records that a new leader recovered
	Orphans         uint64 // aborted because their proposers were gone
}

// Backups counts what is in the places at the end, and the states that were restored.
type Backups struct {
	Segments, Bases, Gaps, Restored        uint64
	RemovedLog, RemovedBases, RemovedFiles uint64 // by retention
}

// Changes counts changes of the configuration.
type Changes struct {
	ByProtocol      map[string]uint64 // committed ones
	Aborted, Undone uint64            // aborted by an entry; truncated with a leader's log
	Settled         uint64
	Jobs            uint64 // jobs that were done
	LeadersLost     uint64 // in the middle of a change
}

// Identity counts events of data directories and epochs.
type Identity struct {
	Recoveries, Adopted uint64 // of survivors; records that they kept
	Unwelcome, Cures    uint64 // processes refused by others; members reset
}

// Load copies the counts of the clients.
func (c *Counts) Load(l *workload.Load) {
	c.Ops, c.Answered, c.Unanswered, c.Refused = l.Ops, l.Answered, l.Unanswered, l.Refused
	c.Watched, c.Renewed, c.Direct, c.Denied = l.Events, l.Renewals, l.Direct, l.Denied
	c.OverQuota = l.OverQuota
}

// Add adds the counts of another run.
func (c *Counts) Add(o *Counts) {
	for _, pair := range [][2]*uint64{
		{&c.Events, &o.Events}, {&c.Steps, &o.Steps}, {&c.Messages, &o.Messages}, {&c.Dropped, &o.Dropped},
		{&c.Duplicated, &o.Duplicated}, {&c.Overflowed, &o.Overflowed}, {&c.Sent, &o.Sent}, {&c.Again, &o.Again},
		{&c.InVain, &o.InVain}, {&c.Applied, &o.Applied}, {&c.Elections, &o.Elections},
		{&c.Starts, &o.Starts}, {&c.Failures, &o.Failures}, {&c.Snapshots, &o.Snapshots}, {&c.Ops, &o.Ops},
		{&c.Answered, &o.Answered}, {&c.Unanswered, &o.Unanswered}, {&c.Refused, &o.Refused}, {&c.Denied, &o.Denied},
		{&c.OverQuota, &o.OverQuota},
		{&c.Watched, &o.Watched}, {&c.Renewed, &o.Renewed}, {&c.LeaseParts, &o.LeaseParts},
		{&c.Waited, &o.Waited}, {&c.SentAway, &o.SentAway},
		{&c.Duplicates, &o.Duplicates}, {&c.Gathered, &o.Gathered},
		{&c.Aborted, &o.Aborted}, {&c.Undone, &o.Undone}, {&c.Settled, &o.Settled},
		{&c.Jobs, &o.Jobs}, {&c.LeadersLost, &o.LeadersLost},
		{&c.Inferred, &o.Inferred}, {&c.Fast, &o.Fast}, {&c.FastTried, &o.FastTried}, {&c.Stamped, &o.Stamped},
		{&c.Skipped, &o.Skipped},
		{&c.Recovered, &o.Recovered}, {&c.Orphans, &o.Orphans}, {&c.Direct, &o.Direct},
		{&c.Recoveries, &o.Recoveries}, {&c.Adopted, &o.Adopted}, {&c.Unwelcome, &o.Unwelcome}, {&c.Cures, &o.Cures},
		{&c.Segments, &o.Segments}, {&c.Bases, &o.Bases}, {&c.Gaps, &o.Gaps}, {&c.Restored, &o.Restored},
		{&c.RemovedLog, &o.RemovedLog}, {&c.RemovedBases, &o.RemovedBases}, {&c.RemovedFiles, &o.RemovedFiles},
	} {
		*pair[0] += *pair[1]
	}
	if c.Faults == nil {
		c.Faults, c.ByProtocol = map[string]uint64{}, map[string]uint64{}
	}
	for name, n := range o.Faults {
		c.Faults[name] += n
	}
	for name, n := range o.ByProtocol {
		c.ByProtocol[name] += n
	}
}

// list lists the counts by name, in order.
func list(counts map[string]uint64) string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = fmt.Sprintf("%s=%d", name, counts[name])
	}
	return strings.Join(names, " ")
}

// String returns the counts in one line.
func (c *Counts) String() string {
	return fmt.Sprintf("ops=%d answered=%d denied=%d over-quota=%d watched=%d renewed=%d lease-parts=%d waited=%d "+
		"sent-away=%d applied=%d repeated=%d inferred=%d "+
		"fast=%d/%d stamped=%d direct=%d "+
		"skipped=%d recovered=%d orphans=%d gathered=%d messages=%d dropped=%d overflowed=%d "+
		"bytes=%d again=%d in-vain=%d elections=%d starts=%d snapshots=%d "+
		"changes: %s aborted=%d undone=%d settled=%d jobs=%d leaders-lost=%d "+
		"unwelcome=%d cures=%d recoveries=%d adopted=%d "+
		"backup: segments=%d bases=%d gaps=%d restored=%d removed=%d/%d/%d faults: %s",
		c.Ops, c.Answered, c.Denied, c.OverQuota, c.Watched, c.Renewed, c.LeaseParts, c.Waited, c.SentAway, c.Applied,
		c.Duplicates, c.Inferred,
		c.Fast, c.FastTried, c.Stamped, c.Direct, c.Skipped,
		c.Recovered, c.Orphans, c.Gathered,
		c.Messages, c.Dropped, c.Overflowed, c.Sent, c.Again, c.InVain, c.Elections,
		c.Starts, c.Snapshots, list(c.ByProtocol), c.Aborted, c.Undone, c.Settled, c.Jobs, c.LeadersLost,
		c.Unwelcome, c.Cures, c.Recoveries, c.Adopted,
		c.Segments, c.Bases, c.Gaps, c.Restored, c.RemovedLog, c.RemovedBases, c.RemovedFiles, list(c.Faults))
}
