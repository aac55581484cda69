package apply_test

import (
	"errors"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/nextlevel"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

const next = nextlevel.Level

// upgraded is a cluster that began with earlier builds, all of whose members run the next one now.
func upgraded(t *testing.T, policy string) *bench {
	b := newLeveledBench(t, next)
	for _, l := range []level.Level{level.Own, next} {
		for member := range uint64(3) {
			b.knows(member+1, l)
		}
		if err := b.first("now"); err != nil {
			t.Fatal(err)
		}
	}
	b.policy(policy)
	return b
}

// first proposes what a leader does when it sees that all members have published their levels.
func (b *bench) first(policy string) error {
	b.t.Helper()
	p, err := level.ParsePolicy(policy)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: p, Initial: true, Of: b.m.LevelView()}}).Err
}

// rises proposes to raise the level, and reports whether it rose.
func (b *bench) rises(op kv.RaiseOp) bool {
	b.t.Helper()
	op.Of = b.m.LevelView()
	res := b.do(kv.Command{Raise: &op})
	rose := b.m.ActiveLevel() == next
	if rose != (res.Err == nil) || !rose && !errors.Is(res.Err, kv.ErrBadCommand) {
		b.t.Fatalf("level %d, %v", b.m.ActiveLevel(), res.Err)
	}
	return rose
}

func (b *bench) soak(l level.Level, d time.Duration) error {
	return b.do(kv.Command{Soak: &kv.SoakOp{Level: l, Seconds: int64(d / time.Second), Of: b.m.LevelView()}}).Err
}

// Ensure that the level rises by each policy when it may, and not before: what a leader proposes on an old picture of the
// policy changes nothing.
func TestMachine_Apply_raiseByPolicy(t *testing.T) {
	ordinary, finalize := kv.RaiseOp{Level: next}, kv.RaiseOp{Level: next, Finalize: true}
	if b := upgraded(t, "now"); !b.rises(ordinary) {
		t.Error("now: it does not rise")
	}
	if b := upgraded(t, "hold"); b.soak(next, 0) != nil || b.soak(next, 1000*time.Hour) != nil || b.rises(ordinary) ||
		!b.rises(finalize) {
		t.Error("hold: it rises by itself, or not on an operator's word")
	}
	b := upgraded(t, "soak=1h")
	if b.rises(ordinary) {
		t.Fatal("it rises before the soak")
	}
	for _, d := range []time.Duration{2 * time.Hour, 30 * time.Minute, time.Minute, time.Hour - time.Second} {
		if err := b.soak(next, d); err != nil || b.rises(ordinary) {
			t.Fatalf("soaked for %v (%v): %+v", d, err, b.m.Rise()) // the first begins with zero
		}
	}
	b.openAs(next)
	if got, want := b.m.Rise(), (level.Rise{Policy: level.Policy{Kind: level.PolicySoak, Seconds: 3600}, Born: level.Own,
		Lowest: level.Own, Level: next, Seconds: 3599, Generation: b.m.Rise().Generation}); got != want {
		t.Fatalf("after a restart %+v, want %+v", got, want)
	}
	if b.soak(next, time.Hour) != nil || !b.rises(ordinary) {
		t.Errorf("it does not rise after the soak: %+v", b.m.Rise())
	}
	if r := b.m.Rise(); r.Level != 0 || r.Seconds != 0 {
		t.Errorf("it soaks on: %+v", r)
	}
	if err := b.soak(next, time.Hour); !errors.Is(err, kv.ErrBadCommand) {
		t.Errorf("the active level soaks: %v", err)
	}
}

// Ensure that a member that goes back to a build without the level ends its soak, and that members without it keep it from
// beginning.
func TestMachine_Apply_soakEnds(t *testing.T) {
	b := upgraded(t, "soak=1h")
	if b.soak(next, 0) != nil || b.soak(next, 59*time.Minute) != nil {
		t.Fatalf("%+v", b.m.Rise())
	}
	b.knows(2, level.Own)
	if err := b.soak(next, time.Hour); !errors.Is(err, kv.ErrBadCommand) {
		t.Errorf("a member without the level: %v", err)
	}
	b.knows(2, next)
	if b.rises(kv.RaiseOp{Level: next}) || b.soak(next, time.Hour) != nil || b.rises(kv.RaiseOp{Level: next}) {
		t.Errorf("the soak went on over a member that went back: %+v", b.m.Rise())
	}
}

// Ensure that a cluster all of whose first builds know a level rises to it at once, whatever its policy, and that one among the
// first that does not keeps it from that.
func TestMachine_Apply_born(t *testing.T) {
	for _, first := range []level.Level{level.Own, next} {
		b := newLeveledBench(t, next)
		b.policy("hold")
		b.knows(1, next)
		b.knows(1, next)
		b.knows(2, first)
		if err := b.first("now"); !errors.Is(err, kv.ErrBadCommand) {
			t.Errorf("a member has not published its level: %v", err)
		}
		b.knows(3, next)
		if err := b.first("now"); err != nil {
			t.Fatal(err)
		}
		b.knows(2, next)
		if err := b.first("now"); err != nil {
			t.Fatal(err)
		}
		if rose := b.rises(kv.RaiseOp{Level: next}); rose != (first == next) {
			t.Errorf("the second member began with level %d: rose %t, %+v", first, rose, b.m.Rise())
		}
	}
}

// Ensure that policies of leaders do not replace that of an operator, and that one that is none is refused.
func TestMachine_Apply_levelPolicy(t *testing.T) {
	b := upgraded(t, "hold")
	if err := b.first("now"); err != nil || b.m.Rise().Policy.Kind != level.PolicyHold {
		t.Errorf("%v, %+v", err, b.m.Rise())
	}
	for _, bad := range []level.Policy{{}, {Kind: level.PolicySoak}, {Kind: level.PolicyNow, Seconds: 1},
		{Kind: level.PolicySoak, Seconds: 90*24*3600 + 1}} {
		if res := b.do(kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: bad, Of: b.m.LevelView()}}); !errors.Is(res.Err, kv.ErrBadCommand) {
			t.Errorf("%v: %v", bad, res.Err)
		}
	}
}

// Ensure that a member that joined, and replays the log without the first configuration of the cluster, decides as a founder does:
// about the level that the cluster is born at, about a soak, and about a raise that is refused.
func TestMachine_Apply_riseWithoutFirstConfig(t *testing.T) {
	founder := newLeveledBench(t, next)
	joined := &bench{t: t, fs: filestest.NewCrashableMem()}
	joined.openEngine()
	if err := apply.Bootstrap(joined.eng, 77, consensus.Config{}); err != nil {
		t.Fatal(err)
	}
	joined.openAs(next)
	b := founder
	b.knows(1, next)
	b.do(b.raise(next)) // two members have not published anything
	b.knows(2, level.Own)
	b.knows(3, next)
	if err := b.first("now"); err != nil {
		t.Fatal(err)
	}
	b.do(b.raise(next)) // the second one does not know it
	b.do(b.raise(level.Own))
	b.policy("soak=1h")
	b.knows(2, next)
	_, _ = b.soak(next, 0), b.soak(next, time.Hour-time.Second)
	b.do(b.raise(next))
	joined.apply(founder.log...)
	if founder.m.Rise() != joined.m.Rise() || founder.m.Chain() != joined.m.Chain() || founder.m.ActiveLevel() != joined.m.ActiveLevel() {
		t.Errorf("a founder has %+v, chain %v, level %d; a member that joined %+v, %v, %d", founder.m.Rise(), founder.m.Chain(),
			founder.m.ActiveLevel(), joined.m.Rise(), joined.m.Chain(), joined.m.ActiveLevel())
	}
	if r := founder.m.Rise(); r.Born != level.Own || r.Seconds != 3599 || founder.m.ActiveLevel() != level.Own {
		t.Errorf("%+v, level %d", r, founder.m.ActiveLevel())
	}
}

// Ensure that what was asked for under another policy, or before a soak began anew, changes nothing when it arrives: a hold that was
// answered holds.
func TestMachine_Apply_delayed(t *testing.T) {
	b := upgraded(t, "soak=1h")
	if b.soak(next, 0) != nil || b.soak(next, time.Minute) != nil {
		t.Fatalf("%+v", b.m.Rise())
	}
	delayed := b.m.LevelView()
	b.policy("hold")
	now := level.Policy{Kind: level.PolicyNow}
	for what, command := range map[string]kv.Command{
		"finalize": {Raise: &kv.RaiseOp{Level: next, Finalize: true, Of: delayed}},
		"a policy": {LevelPolicy: &kv.LevelPolicyOp{Policy: now, Of: delayed}},
		"a soak":   {Soak: &kv.SoakOp{Level: next, Seconds: 3600, Of: delayed}},
	} {
		former := b.m.Rise()
		if res := b.do(command); !errors.Is(res.Err, kv.ErrBadCommand) || b.m.Rise() != former || b.m.ActiveLevel() == next {
			t.Errorf("%s: %v, %+v", what, res.Err, b.m.Rise())
		}
	}
	delayed = b.m.LevelView()
	b.knows(2, level.Own)
	b.knows(2, next)
	if res := b.do(kv.Command{Soak: &kv.SoakOp{Level: next, Seconds: 3600, Of: delayed}}); !errors.Is(res.Err, kv.ErrBadCommand) {
		t.Errorf("a soak from before it ended: %v, %+v", res.Err, b.m.Rise())
	}
}

// Ensure that a cluster is not born at a level that some member once did not know: a member that starts for the first time after an
// upgrade of the others makes no way back end.
func TestMachine_Apply_bornLate(t *testing.T) {
	b := newLeveledBench(t, next)
	for _, l := range []level.Level{level.Own, next} {
		b.knows(1, l)
		b.knows(2, l)
	}
	b.policy("hold")
	b.knows(3, next)
	if err := b.first("now"); err != nil || b.rises(kv.RaiseOp{Level: next}) || b.m.Rise().Born != level.Own {
		t.Errorf("%v, %+v", err, b.m.Rise())
	}
}

// downgrade proposes to hold the level for the way back to a release.
func (b *bench) downgrade(text string) error {
	b.t.Helper()
	release, ok := level.ParseRelease(text)
	if !ok {
		b.t.Fatal(text)
	}
	return b.do(kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: level.Policy{Kind: level.PolicyHold}, Target: release,
		Of: b.m.LevelView()}}).Err
}

// runs publishes builds of all members, which know the next level unless they are of release 1.0, which knows the first one.
func (b *bench) runs(builds ...string) {
	b.t.Helper()
	for i, build := range builds {
		op := &kv.PublishOp{Member: uint64(i + 1), Name: "m", Version: "3.7.1", Build: build, Level: next}
		if release, _ := level.ParseRelease(build); release.Major == 1 && release.Minor == 0 {
			op.Level = level.First
		}
		if res := b.do(kv.Command{Publish: op}); res.Err != nil {
			b.t.Fatal(res.Err)
		}
	}
}

// Ensure that a downgrade holds the level, and that the policy before it comes back, also after a restart: once all members have
// returned and not before, by the next policy, or as the level rises.
func TestMachine_Apply_downgrade(t *testing.T) {
	soak := level.Policy{Kind: level.PolicySoak, Seconds: 3600}
	hold := level.Policy{Kind: level.PolicyHold}
	target := level.Release{Major: 1}
	returned := func(b *bench) error {
		return b.do(kv.Command{LevelPolicy: &kv.LevelPolicyOp{Returned: true, Of: b.m.LevelView()}}).Err
	}
	for name, row := range map[string]struct {
		end    func(b *bench) error
		policy level.Policy
	}{
		"all return": {func(b *bench) error {
			for _, builds := range [][]string{{"1.1.0"}, {"1.0.3", "1.0.0", "9.9.9"}, {"1.0.3", "1.0.0", "b"}} {
				if b.runs(builds...); b.m.HasReturned() || !errors.Is(returned(b), kv.ErrBadCommand) {
					t.Errorf("it is over with builds %v", builds)
				}
			}
			if b.runs("1.0.3", "1.0.0", "1.0.0-dev+20261124.3f"); !b.m.HasReturned() {
				t.Error("nobody sees that all have returned")
			}
			return returned(b)
		}, soak},
		"another policy": {func(b *bench) error { b.policy("now"); return nil }, level.Policy{Kind: level.PolicyNow}},
		"the level rises": {func(b *bench) error {
			if !b.rises(kv.RaiseOp{Level: next, Finalize: true}) {
				t.Error("it does not rise")
			}
			return nil
		}, soak},
	} {
		b := upgraded(t, "soak=1h")
		b.runs("1.1.0", "1.1.0", "1.1.0")
		if err := b.downgrade("1.0"); err != nil {
			t.Fatal(err)
		}
		b.openAs(next)
		if r := b.m.Rise(); r.Policy != hold || r.Target != target || r.Before != soak || b.rises(kv.RaiseOp{Level: next}) {
			t.Errorf("%s: under way: %+v", name, r)
		}
		if err := b.downgrade("1.1"); !errors.Is(err, kv.ErrBadCommand) {
			t.Errorf("%s: another one begins: %v", name, err)
		}
		if err := row.end(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b.openAs(next)
		if r := b.m.Rise(); r.Policy != row.policy || !r.Target.IsZero() || r.Before != (level.Policy{}) || b.m.HasReturned() {
			t.Errorf("%s: afterwards: %+v", name, r)
		}
		if err := returned(b); !errors.Is(err, kv.ErrBadCommand) {
			t.Errorf("%s: it is over once more: %v", name, err)
		}
	}
}

// Ensure that a downgrade is refused that holds nothing, that puts no policy back, or that was decided on another picture.
func TestMachine_Apply_downgradeRefused(t *testing.T) {
	b := upgraded(t, "now")
	delayed := b.m.LevelView()
	b.policy("hold")
	target, hold := level.Release{Major: 1}, level.Policy{Kind: level.PolicyHold}
	for name, op := range map[string]kv.LevelPolicyOp{
		"it holds nothing": {Policy: level.Policy{Kind: level.PolicyNow}, Target: target, Of: b.m.LevelView()},
		"it has no policy": {Target: target, Of: b.m.LevelView()},
		"it was delayed":   {Policy: hold, Target: target, Of: delayed},
	} {
		former := b.m.Rise()
		if res := b.do(kv.Command{LevelPolicy: &op}); !errors.Is(res.Err, kv.ErrBadCommand) || b.m.Rise() != former {
			t.Errorf("%s: %v, %+v", name, res.Err, b.m.Rise())
		}
	}
	fresh := newBench(t)
	fresh.openAs(next)
	if err := fresh.downgrade("1.0"); !errors.Is(err, kv.ErrBadCommand) {
		t.Errorf("a cluster without a policy: %v, %+v", err, fresh.m.Rise())
	}
}

// Ensure that only root begins a downgrade, and that a leader, which has no user, ends it.
func TestMachine_Apply_downgradeByRoot(t *testing.T) {
	b := upgraded(t, "soak=1h")
	b.rises(kv.RaiseOp{Level: next, Finalize: true}) // changes of users need that level in this cluster
	for _, change := range []auth.Change{
		{Kind: auth.UserAdd, User: "root", Hash: []byte("h")}, {Kind: auth.UserGrantRole, User: "root", Role: "root"},
		{Kind: auth.Enable, Secret: []byte("0123456789abcdef0123456789abcdef")},
	} {
		if res := b.do(kv.Command{Auth: &change}); res.Err != nil {
			t.Fatalf("%v: %v", change.Kind, res.Err)
		}
	}
	b.runs("1.1.0", "1.1.0", "1.1.0")
	begin := kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: level.Policy{Kind: level.PolicyHold}, Target: level.Release{Major: 1},
		Of: b.m.LevelView()}}
	if res := b.do(begin); res.Err == nil || !b.m.Rise().Target.IsZero() {
		t.Errorf("nobody begins a downgrade: %v", res.Err)
	}
	begin.By = auth.Credentials{User: "root", Revision: b.m.Users().Revision()}
	if res := b.do(begin); res.Err != nil {
		t.Fatal(res.Err)
	}
	b.runs("1.0.0", "1.0.0", "1.0.0")
	end := kv.Command{LevelPolicy: &kv.LevelPolicyOp{Returned: true, Of: b.m.LevelView()}}
	if res := b.do(end); res.Err != nil || !b.m.Rise().Target.IsZero() {
		t.Errorf("a leader ends it: %v, %+v", res.Err, b.m.Rise())
	}
}

// Ensure that a soak begins anew once a downgrade has been cancelled, however long the hold was.
func TestMachine_Apply_downgradeCancelled(t *testing.T) {
	b := upgraded(t, "soak=1h")
	b.runs("1.1.0", "1.1.0", "1.1.0")
	soak := func(seconds int64) {
		t.Helper()
		if err := b.do(kv.Command{Soak: &kv.SoakOp{Level: next, Seconds: seconds, Of: b.m.LevelView()}}).Err; err != nil {
			t.Fatal(err)
		}
	}
	soak(0)
	if err := b.downgrade("1.0"); err != nil {
		t.Fatal(err)
	}
	if b.m.Rise().Level != next {
		soak(0)
	}
	soak(3600)
	b.policy("soak=1h") // what etcd's CANCEL proposes
	if r := b.m.Rise(); !r.Target.IsZero() || r.Level != 0 || r.Seconds != 0 || b.rises(kv.RaiseOp{Level: next}) {
		t.Errorf("the soak goes on: %+v", r)
	}
}

// Ensure that the level does not rise during a downgrade, not to the one either at which the cluster was born.
func TestMachine_Apply_downgradeOfBorn(t *testing.T) {
	rise := level.Rise{Policy: level.Policy{Kind: level.PolicyHold}, Born: next}
	if !rise.Allows(next) {
		t.Error("the level of birth is not reached")
	}
	rise.Target = level.Release{Major: 1}
	if rise.Allows(next) {
		t.Error("the level rises during a downgrade")
	}
}
