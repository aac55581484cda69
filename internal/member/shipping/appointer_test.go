package shipping_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/shipping"
)

// cluster carries out what Appointers propose, as package apply does. Member 1 leads, 2 and 3 are voters, 4 is a learner.
type cluster struct {
	t       *testing.T
	now     time.Time
	row     kv.BackupRow
	status  raft.Status
	silent  map[uint64]bool // members that do not report
	trouble map[uint64]bool // members that do not reach the place
	refuses map[uint64]bool // members that may not use the place
	changes []uint64        // members that were appointed, in order
}

func newCluster(t *testing.T, voters ...consensus.MemberID) *cluster {
	c := &cluster{t: t, now: time.Unix(1000, 0), silent: map[uint64]bool{}, trouble: map[uint64]bool{}, refuses: map[uint64]bool{}, status: raft.Status{ID: 1,
		Config: consensus.Config{Voters: voters}}}
	for _, id := range voters {
		c.add(id)
	}
	c.apply(&kv.BackupOp{Kind: kv.BackupSet, Policy: kv.BackupPolicy{On: true, Place: "file:///b", BaseSeconds: 3600, SealMillis: 1000}})
	return c
}

func (c *cluster) add(id consensus.MemberID) {
	c.status.Config.Members = append(c.status.Config.Members, consensus.Member{ID: id})
	if id != c.status.ID {
		c.status.Progress = append(c.status.Progress, raft.PeerProgress{ID: id, RecentActive: true, CaughtUp: true})
	}
}

func (c *cluster) peer(id consensus.MemberID) *raft.PeerProgress {
	for i := range c.status.Progress {
		if c.status.Progress[i].ID == id {
			return &c.status.Progress[i]
		}
	}
	c.t.Fatalf("no member %v", id)
	return nil
}

func (c *cluster) apply(op *kv.BackupOp) {
	c.t.Helper()
	next, ok := c.row.Next(op, func(uint64) bool { return false })
	if !ok {
		c.t.Fatalf("%+v is refused: %+v", op, c.row)
	}
	c.row = next
	if op.Kind == kv.BackupAppoint {
		c.changes = append(c.changes, op.Member)
	}
}

// run looks each 100 ms; the member whose turn it is reports as often as members do.
func (c *cluster) run(a *shipping.Appointer, total time.Duration) {
	c.t.Helper()
	for passed := time.Duration(0); passed < total; passed += 100 * time.Millisecond {
		if command, due := a.Look(c.now, &shipping.View{Row: &c.row, Status: &c.status}); due {
			c.apply(command.Backup)
		}
		if m := c.row.Member; m != 0 && !c.silent[m] && passed%shipping.ReportEvery == 0 {
			report := &kv.BackupOp{Kind: kv.BackupReport, Turn: c.row.Turn, Member: m}
			if c.trouble[m] || c.refuses[m] {
				report.Progress.Trouble, report.Progress.Refused = "no such directory", c.refuses[m]
			}
			c.apply(report)
		}
		c.now = c.now.Add(100 * time.Millisecond)
	}
}

func (c *cluster) want(what string, members ...uint64) {
	c.t.Helper()
	if len(c.changes) != len(members) {
		c.t.Fatalf("%s: appointed %v, want %v", what, c.changes, members)
	}
	for i := range members {
		if c.changes[i] != members[i] {
			c.t.Fatalf("%s: appointed %v, want %v", what, c.changes, members)
		}
	}
	c.changes = nil
}

// Ensure that a voter that does not lead ships, a learner rather than it, and that it stays as long as it reports.
func TestAppointer_Look_prefers(t *testing.T) {
	c := newCluster(t, 1, 2, 3)
	c.peer(2).CaughtUp = false
	a := new(shipping.Appointer)
	c.run(a, time.Hour)
	c.want("a voter that has not caught up", 3)
	c.peer(2).CaughtUp = true
	c.run(a, time.Hour)
	c.want("the one that ships reports")

	c = newCluster(t, 1, 2, 3)
	c.status.Config.Learners = []consensus.MemberID{4}
	c.add(4)
	c.run(new(shipping.Appointer), time.Hour)
	c.want("a learner", 4)

	c = newCluster(t, 1)
	c.run(new(shipping.Appointer), time.Second)
	c.want("one member", 1)
}

// Ensure that a member which does not report is replaced after the patience, and that the next one, and all of them in turn, get
// theirs, while one that reports again is not left out for ever.
func TestAppointer_Look_silent(t *testing.T) {
	c := newCluster(t, 1, 2, 3)
	a := new(shipping.Appointer)
	c.silent[2], c.silent[3] = true, true
	c.run(a, shipping.DefaultPatience-time.Second)
	c.want("before the patience ends", 2)
	c.run(a, 2*time.Second)
	c.want("after it", 3)
	c.run(a, shipping.DefaultPatience)
	c.want("the other one is silent, too", 1)
	c.silent[2] = false
	c.run(a, time.Hour)
	c.want("the leader moves it away", 2)

	c = newCluster(t, 1)
	c.silent[1] = true
	c.run(new(shipping.Appointer), time.Hour)
	c.want("the only member has nobody to replace it", 1)
}

// Ensure that a member that is gone, or cordoned where another one is not, is replaced at once, and one that is only down after
// the patience.
func TestAppointer_Look_gone(t *testing.T) {
	c := newCluster(t, 1, 2, 3)
	a := new(shipping.Appointer)
	c.run(a, time.Minute)
	c.want("at first", 2)
	c.status.Config.Members[1].Cordoned = true
	c.run(a, time.Second)
	c.want("it is cordoned", 3)
	c.status.Config.Members = c.status.Config.Members[:2]
	c.status.Progress = c.status.Progress[:1]
	c.run(a, time.Second)
	c.want("it is removed, and the leader is the one that is not cordoned", 1)
	c.status.Config.Members[1].Cordoned = false
	c.run(a, time.Hour)
	c.want("the leader moves it away", 2)
}

// Ensure that a member that the leader does not hear is replaced earlier than one that is silent, and that a short break does no
// harm.
func TestAppointer_Look_away(t *testing.T) {
	c := newCluster(t, 1, 2, 3)
	a := new(shipping.Appointer)
	c.run(a, time.Minute)
	c.want("at first", 2)
	c.silent[2] = true
	for range 3 {
		c.peer(2).RecentActive = false
		c.run(a, shipping.DefaultAway-time.Second)
		c.peer(2).RecentActive = true
		c.run(a, time.Second)
	}
	c.want("short breaks")
	c.silent[2] = false
	c.run(a, time.Minute)
	c.peer(2).RecentActive, c.silent[2] = false, true
	c.run(a, shipping.DefaultAway+time.Second)
	c.want("it is away", 3)
}

// Ensure that a member which reports that it cannot ship is replaced after a while, that none is for trouble that passes, and that
// all of them in turn get their chance where nobody can.
func TestAppointer_Look_troubled(t *testing.T) {
	c := newCluster(t, 1, 2, 3)
	a := new(shipping.Appointer)
	c.trouble[2] = true
	c.run(a, shipping.DefaultTroubled-time.Second)
	c.want("for a while", 2)
	c.run(a, 15*time.Second)
	c.want("it cannot ship", 3)
	for range 5 {
		c.trouble[3] = true
		c.run(a, shipping.DefaultTroubled-20*time.Second)
		c.trouble[3] = false
		c.run(a, 20*time.Second)
	}
	c.want("trouble that passes")
	c.trouble[1], c.trouble[2], c.trouble[3] = true, true, true
	c.run(a, 4*shipping.DefaultTroubled)
	if len(c.changes) < 3 {
		t.Errorf("nobody can ship: appointed %v", c.changes)
	}
	c.changes, c.trouble = nil, map[uint64]bool{}
	c.run(a, time.Hour)
	if len(c.changes) > 1 {
		t.Errorf("all can again: appointed %v", c.changes)
	}
}

// Ensure that a new leader that knows nothing of the others yet does not ship itself at once, and takes over a turn as it is.
func TestAppointer_Look_newLeader(t *testing.T) {
	c := newCluster(t, 1, 2, 3)
	c.peer(2).RecentActive, c.peer(3).RecentActive = false, false
	a := new(shipping.Appointer)
	c.run(a, 5*time.Second)
	c.want("nobody was heard")
	c.peer(3).RecentActive = true
	c.run(a, time.Second)
	c.want("one is heard", 3)
	a.Rest()
	c.run(a, time.Hour)
	c.want("another term")
}

// Ensure that nobody is appointed while the backup is off.
func TestAppointer_Look_off(t *testing.T) {
	c := newCluster(t, 1, 2, 3)
	policy := c.row.Policy
	policy.On = false
	c.apply(&kv.BackupOp{Kind: kv.BackupSet, Generation: c.row.Generation, Policy: policy})
	c.run(new(shipping.Appointer), time.Hour)
	c.want("off")
}

// Ensure that a member which may not use the place is replaced at once, and not appointed again soon; that the leader is appointed where it
// alone may; and that the turn goes round slowly where nobody may.
func TestAppointer_Look_refused(t *testing.T) {
	c := newCluster(t, 1, 2, 3)
	a := new(shipping.Appointer)
	c.refuses[2] = true
	c.run(a, shipping.DefaultRefusal/2)
	c.want("one may not", 2, 3)

	c = newCluster(t, 1, 2, 3)
	c.refuses[2], c.refuses[3] = true, true
	a = new(shipping.Appointer)
	c.run(a, shipping.DefaultPatience+time.Minute)
	c.want("only the leader may", 2, 3, 1)
	c.run(a, shipping.DefaultRefusal/2)
	c.want("the leader goes on")
	c.run(a, shipping.DefaultRefusal)
	if n := len(c.changes); n == 0 || n > 8 || c.row.Member != 1 {
		t.Errorf("the others are asked again: %v", c.changes)
	}

	c = newCluster(t, 1, 2, 3)
	c.refuses[1], c.refuses[2], c.refuses[3] = true, true, true
	c.run(new(shipping.Appointer), shipping.DefaultRefusal)
	if n := len(c.changes); n < 10 || n > 100 {
		t.Errorf("nobody may: %d appointments in %v", n, shipping.DefaultRefusal)
	}
}
