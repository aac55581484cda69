package shipping_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/shipping"
)

// proving is a cluster that proves its backup.
type proving struct {
	*cluster
	wall  int64         // the leader's clock
	takes time.Duration // a try
	ends  func(member uint64, wall int64) kv.BackupProof
	tries []uint64 // members that were appointed
	times []time.Duration
	begun time.Time
}

func newProving(t *testing.T, every time.Duration, voters ...consensus.MemberID) *proving {
	t.Helper()
	p := &proving{cluster: newCluster(t, voters...), wall: 1_790_000_000_000, takes: time.Minute,
		ends: func(_ uint64, wall int64) kv.BackupProof {
			return kv.BackupProof{At: wall, Proven: true, Point: kv.BackupPoint{Index: 9}}
		}}
	p.begun = p.now
	p.setPolicy(every)
	p.row.Progress.Base.Index = 5
	p.row.Member = 2
	return p
}

func (p *proving) setPolicy(every time.Duration) {
	p.t.Helper()
	policy := p.row.Policy
	policy.VerifySeconds = int64(every / time.Second)
	p.apply(&kv.BackupOp{Kind: kv.BackupSet, Generation: p.row.Generation, Policy: policy})
}

// run looks each second.
func (p *proving) run(a *shipping.Prover, total time.Duration) {
	p.t.Helper()
	began := p.now
	for end := p.now.Add(total); p.now.Before(end); p.now = p.now.Add(time.Second) {
		if command, due := a.Look(p.now, p.wall, &shipping.View{Row: &p.row, Status: &p.status}); due {
			p.apply(command.Backup)
			p.tries, p.times = append(p.tries, command.Backup.Member), append(p.times, p.now.Sub(p.begun))
			began = p.now
		}
		if m := p.row.Proofs.Member; m != 0 && !p.silent[m] && p.now.Sub(began) >= p.takes {
			proof := p.ends(m, p.wall)
			p.apply(&kv.BackupOp{Kind: kv.BackupProved, Turn: p.row.Proofs.Number, Member: m, Proof: proof})
		}
		p.wall += 1000
	}
}

func (p *proving) want(what string, members ...uint64) {
	p.t.Helper()
	if !slices.Equal(p.tries, members) {
		p.t.Errorf("%s: members %v tried, at %v; want %v", what, p.tries, p.times, members)
	}
}

// A backup is proven once the first base is there, and then as often as the policy says, by members that neither ship nor lead,
// in turn; also across leaders.
func TestProver_Look(t *testing.T) {
	p := newProving(t, 24*time.Hour, 1, 2, 3)
	p.add(4)
	a := &shipping.Prover{}
	base := p.row.Progress.Base
	p.row.Progress.Base.Index = 0
	p.run(a, time.Hour)
	p.want("without a base")
	p.row.Progress.Base = base
	p.row.Policy.Recipients = "age1a"
	p.run(a, 48*time.Hour)
	p.want("encrypted: no member can read it")
	p.row.Policy.Recipients = ""
	p.run(a, time.Minute)
	p.want("at once", 3)
	p.run(a, 47*time.Hour)
	p.want("the next day", 3, 4)
	p.run(&shipping.Prover{}, 25*time.Hour) // another leader
	p.want("by another leader", 3, 4, 3)
	p.setPolicy(0)
	p.row.Progress.Base = base
	p.run(a, 60*time.Hour)
	p.want("never", 3, 4, 3)
	p.setPolicy(time.Hour)
	p.run(a, 30*time.Minute)
	p.want("another policy", 3, 4, 3, 4)
}

// A backup whose proof failed is tried again sooner, and one that could not be tried still sooner, by another member.
func TestProver_Look_again(t *testing.T) {
	p := newProving(t, 24*time.Hour, 1, 2, 3)
	p.add(4)
	p.ends = func(_ uint64, wall int64) kv.BackupProof { return kv.BackupProof{At: wall, Failed: true, Why: "obj"} }
	a := &shipping.Prover{}
	p.run(a, 13*time.Hour)
	p.want("failed", 3, 4, 3)
	p.ends = func(_ uint64, wall int64) kv.BackupProof { return kv.BackupProof{At: wall, Why: "no room"} }
	p.run(a, 8*time.Hour)
	p.want("not tried", 3, 4, 3, 4, 3, 4)
	p.row.Progress.Trouble = "the place is away"
	p.run(a, 8*time.Hour)
	p.want("in trouble", 3, 4, 3, 4, 3, 4)
}

// A member that is gone, or takes too long, is replaced; one that is slow is not.
func TestProver_Look_lost(t *testing.T) {
	p := newProving(t, 24*time.Hour, 1, 2, 3)
	p.add(4)
	p.silent[3], p.silent[4] = true, true
	a := &shipping.Prover{}
	p.run(a, 20*time.Hour)
	p.want("slow", 3)
	p.run(a, 5*time.Hour)
	p.want("too slow", 3, 4)
	p.peer(4).RecentActive = false
	p.run(a, 30*time.Second)
	p.want("away for a moment", 3, 4)
	p.run(a, 2*time.Minute)
	p.want("away", 3, 4, 3)
	p.status.Config.Members = slices.DeleteFunc(p.status.Config.Members, func(m consensus.Member) bool { return m.ID == 3 })
	p.status.Config.Voters = []consensus.MemberID{1, 2}
	p.run(a, time.Minute)
	p.want("removed", 3, 4, 3, 2)
}

// A leader proves only where there is nobody else, and clocks that jump make no proof follow the other, nor end them.
func TestProver_Look_clocks(t *testing.T) {
	alone := newProving(t, time.Hour, 1)
	alone.run(&shipping.Prover{}, time.Minute)
	alone.want("alone", 1)
	p := newProving(t, time.Hour, 1, 2, 3)
	p.ends = func(_ uint64, wall int64) kv.BackupProof { // the clock of a member is a week behind
		return kv.BackupProof{At: wall - 7*24*3600_000, Proven: true, Point: kv.BackupPoint{Index: 9}}
	}
	a := &shipping.Prover{}
	p.run(a, 3*time.Hour+30*time.Minute)
	if n := len(p.tries); n != 4 {
		t.Errorf("behind: %d tries at %v", n, p.times)
	}
	p.ends = func(_ uint64, wall int64) kv.BackupProof { // a week ahead
		return kv.BackupProof{At: wall + 7*24*3600_000, Proven: true, Point: kv.BackupPoint{Index: 9}}
	}
	p.run(a, 4*time.Hour)
	if n := len(p.tries); n < 7 || n > 9 {
		t.Errorf("ahead: %d tries at %v", n, p.times)
	}
	away := newProving(t, time.Hour, 1, 2, 3)
	away.peer(2).RecentActive, away.peer(3).RecentActive = false, false
	away.run(&shipping.Prover{}, 30*time.Second)
	away.want("a new leader waits for others")
	away.run(&shipping.Prover{}, time.Minute)
	away.want("nobody came", 1)
}
