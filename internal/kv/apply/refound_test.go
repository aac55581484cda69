package apply_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

// refounded makes the bench's store that of cluster 88, of members 7 and 8, and opens it.
func (b *bench) refounded(bump uint64) *apply.Refounded {
	b.t.Helper()
	done, err := b.m.Refound(bump)
	if err != nil {
		b.t.Fatal(err)
	}
	base := consensus.Founding(consensus.Config{Voters: []consensus.MemberID{7, 8}})
	base.Position = consensus.Position{Index: 1, Term: 1}
	if err := apply.Found(b.eng, 88, done.Level, &base); err != nil {
		b.t.Fatal(err)
	}
	b.m.Detach()
	b.open()
	b.index = 1
	return done
}

// history is all that a store shows of its keys, at each revision from the compacted one on.
func (b *bench) history() (shown []string) {
	b.t.Helper()
	store := b.m.Store()
	for rev := max(store.CompactRevision(), 1); rev <= store.Revision(); rev++ {
		res, _, err := store.Range(&kv.RangeOp{Key: []byte{0}, End: []byte{0}, Revision: rev})
		if err != nil {
			b.t.Fatal(rev, err)
		}
		shown = append(shown, fmt.Sprintf("%d: %+v", rev, res.KVs))
	}
	return shown
}

// Ensure that random contents are the same, at each revision, in the cluster that a store is refounded for, whether or not the
// compaction that was under way was done; that nothing is left of sessions, jobs, alarms and the former cluster; and that the
// new one goes on from there.
func TestMachine_Refound_random(t *testing.T) {
	for seed := int64(1); seed <= 20; seed++ {
		for _, bump := range []uint64{0, 1000} {
			rng := rand.New(rand.NewSource(seed))
			g := &generator{rng: rng, revision: 1, sequence: map[consensus.SessionID]uint64{}}
			want := newModel()
			b := newBenchOn(t, seed%10 == 0)
			for len(b.log) < 300 {
				e, cmd := g.entry(b.log)
				b.log = append(b.log, e)
				want.apply(&e, cmd)
				g.revision = want.revision
				b.apply(e)
				if rng.Intn(10) == 0 {
					if _, err := b.m.Store().CompactStep(3); err != nil {
						t.Fatal(err)
					}
				}
			}
			before, compacted, last := b.history(), b.m.Store().CompactRevision(), b.m.Store().Revision()
			done := b.refounded(bump)
			for id := range want.results {
				if _, known, err := b.m.Result(id); known || err != nil || b.m.SessionOpen(id.Session) {
					t.Errorf("the session of %v is left, %v", id, err)
				}
			}
			want.jobs, want.results, want.retired = nil, nil, nil
			want.revision += kv.Revision(bump)
			b.checkState(want)
			if len(b.m.Alarms()) > 0 || b.m.Cluster() != 88 {
				t.Errorf("alarms %v, cluster %v", b.m.Alarms(), b.m.Cluster())
			}
			if bump == 0 {
				if after := b.history(); b.m.Store().CompactRevision() != compacted || !cmp.Equal(before, after) {
					t.Errorf("history: %s", cmp.Diff(before, after))
				}
			} else if b.m.Store().CompactRevision() != last+kv.Revision(bump) || done.Compacted != done.Revision {
				t.Errorf("compacted at %d, %+v", b.m.Store().CompactRevision(), done)
			}
			b.do(kv.Command{Put: &kv.PutOp{Key: []byte("after")}})
			for compacting := true; compacting; {
				complete, err := b.m.Store().CompactStep(1000)
				if err != nil {
					t.Fatal(err)
				}
				compacting = !complete && b.m.Store().CompactRevision() >= 0
			}
			if got := b.get("after"); got == nil || got.ModRevision != last+kv.Revision(bump)+1 {
				t.Errorf("a put after it: %v", got)
			}
			if bump > 0 && b.m.Store().Size().Versions != b.m.Store().Size().Keys {
				t.Errorf("%+v after the compaction", b.m.Store().Size())
			}
			if err := b.eng.Close(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Fatalf("seed %d, bump %d", seed, bump)
			}
		}
	}
}

// Ensure that users, limits, the policy of the audit, authors and moments stay, and that what belongs to a cluster goes: the
// secret of its tokens, its join tokens, heads of the audit, and the policy of the backup, so that the new cluster does not
// write to the place of the former one.
func TestMachine_Refound_secondLevel(t *testing.T) {
	b := raisedBench(t, 1)
	for _, c := range []auth.Change{
		{Kind: auth.UserAdd, User: "root", Hash: []byte("hash")}, {Kind: auth.UserGrantRole, User: "root", Role: "root"},
		{Kind: auth.RoleAdd, Role: "some"}, {Kind: auth.UserAdd, User: "alice", Hash: []byte("other")},
		{Kind: auth.UserGrantRole, User: "alice", Role: "some"}, {Kind: auth.Enable, Secret: make([]byte, 32)},
	} {
		b.byRoot(kv.Command{Auth: &c})
	}
	b.byRoot(quota("q", "a", 1000, 10))
	b.count("q")
	b.byRoot(kv.Command{Put: &kv.PutOp{Key: []byte("a1"), Value: []byte("v")}})
	b.byRoot(auditPolicy(0, `{"rules": []}`))
	b.do(auditHead(1, 1, 1))
	b.do(moment(1000, b.m.Store().Revision()))
	b.byRoot(kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupSet, Policy: kv.BackupPolicy{On: true, Place: "file:///mnt/backups",
		BaseSeconds: 3600, SealMillis: 1000}}})
	if len(b.m.Users().Secret()) == 0 || len(b.m.Moments()) == 0 || !b.m.Backup().Policy.On || len(b.m.Audit().Heads) == 0 {
		t.Fatalf("the test has no contents: %v %+v %+v", b.m.Moments(), b.m.Backup(), b.m.Audit())
	}
	use, authors, moments := b.use("q"), b.authorsOf("a1"), b.m.Moments()

	done := b.refounded(0)
	if done.Level != level.Second || b.m.ActiveLevel() != level.Second || done.Limits != 1 || !done.Audit ||
		done.Users != 2 || done.Roles != 1 || !done.AuthEnabled {
		t.Errorf("%+v, level %d", done, b.m.ActiveLevel())
	}
	if !b.m.Users().Enabled() || len(b.m.Users().Secret()) > 0 {
		t.Errorf("users: enabled %t, secret of %d bytes", b.m.Users().Enabled(), len(b.m.Users().Secret()))
	}
	if got := b.use("q"); got.Keys != use.Keys || got.Bytes != use.Bytes || !got.Counted {
		t.Errorf("use %+v, before %+v", got, use)
	}
	if got := b.authorsOf("a1"); got != authors {
		t.Errorf("authors %q, before %q", got, authors)
	}
	if got := b.m.Moments(); !cmp.Equal(got, moments) {
		t.Errorf("moments %v, before %v", got, moments)
	}
	if audit := b.m.Audit(); !bytes.Contains(audit.Policy, []byte("rules")) || len(audit.Heads) > 0 {
		t.Errorf("audit %+v", audit)
	}
	if row := b.m.Backup(); row.Policy.On || row.Policy.Place != "" || row.Turn != 0 {
		t.Errorf("backup %+v", row)
	}
	if leases := b.m.Leases().Leases(time.Time{}); len(leases) > 0 {
		t.Errorf("leases %v", leases)
	}

	b.refounded(500)
	if got := b.m.Moments(); len(got) > 0 {
		t.Errorf("moments of a history that is forgotten: %v", got)
	}
	if _, _, err := b.m.Store().Range(&kv.RangeOp{Key: []byte("a1"), Revision: 3}); !errors.Is(err, kv.ErrCompacted) {
		t.Errorf("history: %v", err)
	}
}

// byRoot applies a command in the name of root, who is there or is not yet.
func (b *bench) byRoot(cmd kv.Command) {
	b.t.Helper()
	if b.m.Users().Enabled() {
		root, _ := b.m.Users().User("root")
		cmd.By = auth.Credentials{User: "root", Revision: max(root.Since, b.m.Users().Revision())}
	}
	if res := b.do(cmd); res.Err != nil {
		b.t.Fatalf("%+v: %v", cmd, res.Err)
	}
}
