package apply_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

func (b *bench) raiseToSecond() {
	b.t.Helper()
	if res := b.do(b.raise(level.Second)); res.Err != nil || b.m.ActiveLevel() != level.Second {
		b.t.Fatalf("level %d, %v", b.m.ActiveLevel(), res.Err)
	}
}

func moment(time int64, seen kv.Revision) kv.Command {
	return kv.Command{Moment: &kv.MomentOp{Time: time, Member: 1, Seen: seen}}
}

// Ensure that moments are noted from the second level on, survive a restart, change no revision and no key, say how far the
// store was, and that those which say nothing new, or what cannot be, change nothing.
func TestMachine_moments(t *testing.T) {
	b := newSecondBench(t, 1)
	b.do(put("k", "1")) // revision 2
	if res := b.do(moment(5, 2)); !errors.Is(res.Err, kv.ErrBadCommand) || len(b.m.Moments()) > 0 {
		t.Fatalf("below the level: %v, %v", res.Err, b.m.Moments())
	}
	b.raiseToSecond()
	b.do(kv.Command{Alarm: &kv.AlarmOp{Activate: true, Member: 1, Kind: kv.AlarmNoSpace}})
	if res := b.do(moment(5, 2)); res.Err != nil || res.Revision != 2 {
		t.Fatalf("%+v", res)
	}
	b.do(kv.Command{Alarm: &kv.AlarmOp{}})
	b.do(put("k", "2"))
	b.do(put("k", "3"))
	for name, c := range map[string]kv.Command{"again": moment(6, 2), "older": moment(6, 1)} {
		if res := b.do(c); res.Err != nil {
			t.Errorf("%s: %v", name, res.Err)
		}
	}
	for name, c := range map[string]kv.Command{"of the future": moment(6, 5), "of nothing": moment(6, 0),
		"before all": moment(6, -1)} {
		if res := b.do(c); !errors.Is(res.Err, kv.ErrBadCommand) {
			t.Errorf("%s: %v", name, res.Err)
		}
	}
	b.do(moment(3, 3)) // the clock went back
	want := kv.Moments{{Time: 5, Member: 1, Seen: 2, Noted: 2}, {Time: 3, Member: 1, Seen: 3, Noted: 4}}
	for _, what := range []string{"at once", "after a restart"} {
		if got := b.m.Moments(); !slices.Equal(got, want) {
			t.Errorf("%s: %v", what, got)
		}
		b.open()
	}
}

// Ensure that there are never more moments than the bound, that those of the last hours are all there and the first one, too,
// and that a compaction leaves what is needed to say when the versions that are kept were written.
func TestMachine_moments_bound(t *testing.T) {
	b := raisedBench(t, 1)
	rng := rand.New(rand.NewPCG(3, 4))
	var told kv.Moments
	for len(told) < 3*apply.MostMoments {
		for range 1 + rng.IntN(2) {
			b.do(put("k", ""))
		}
		now := b.m.Store().Revision()
		m := kv.Moment{Time: int64(len(told)), Member: 1, Seen: now - kv.Revision(rng.IntN(2)), Noted: now}
		if n := len(told); n > 0 && m.Seen <= told[n-1].Seen {
			continue
		}
		told = append(told, m)
		b.do(moment(m.Time, m.Seen))
		if got := b.m.Moments(); len(got) > apply.MostMoments {
			t.Fatalf("%d moments", len(got))
		}
	}
	got, recent := b.m.Moments(), apply.MostMoments/2
	if !slices.Equal(got[len(got)-recent:], told[len(told)-recent:]) || got[0] != told[0] {
		t.Error("the last moments are not there, or the first is not")
	}
	b.open()
	if again := b.m.Moments(); !slices.Equal(again, got) {
		t.Errorf("after a restart: %d moments of %d", len(again), len(got))
	}
	for _, at := range []int{1, 500, len(got) / 2, len(got) - 1} {
		compact := got[at].Noted
		if b.do(kv.Command{Compact: &kv.CompactOp{Revision: compact}}); b.m.Store().CompactRevision() != compact {
			t.Fatal("not compacted")
		}
		for _, again := range []string{"at once", "after a restart"} {
			left := b.m.Moments()
			after, before := left.Of(compact)
			if wantAfter, wantBefore := got.Of(compact); *after != *wantAfter || *before != *wantBefore || left[0] != *after {
				t.Errorf("%s: revision %d is between %v and %v of %v", again, compact, after, before, left[0])
			}
			b.open()
		}
	}
}

// Ensure that each change has the author of its command from the entry on that raises the level, within one batch, too, and that
// an expired lease is told from one that its owner ends.
func TestMachine_authors(t *testing.T) {
	b := newSecondBench(t, 1)
	client := consensus.ClientSession(99, 1)
	for _, s := range []consensus.SessionID{{Member: 1, Number: 1}, client} {
		b.propose(consensus.ProposalID{Session: s, Sequence: 1},
			kv.Command{SessionOpen: &kv.SessionOpenOp{Member: uint64(s.Member), Number: s.Number}})
	}
	sequence := uint64(1)
	entry := func(s consensus.SessionID, c kv.Command, by string) consensus.Entry {
		sequence++
		c.By = auth.Credentials{User: by, Revision: 1}
		e := b.entry(c)
		e.Proposal = consensus.ProposalID{Session: s, Sequence: sequence}
		return *e
	}
	member := consensus.SessionID{Member: 1, Number: 1}
	expired := kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 7, Term: 1}}
	b.apply(
		entry(member, put("k", "1"), "ann"), entry(member, b.raise(level.Second), ""), // revision 2
		entry(member, put("k", "2"), "ann"), entry(client, put("k", "3"), "bob"), // 3, 4
		entry(member, del("k", ""), ""), entry(member, grant(7), ""), // 5
		entry(member, putLease("k", 7), ""), entry(member, expired, ""), // 6, 7
		entry(member, grant(7), ""), entry(member, putLease("k", 7), ""), entry(client, revoke(7), "eve")) // 8, 9
	want := "9 by {Member:99 Client:true User:eve Cut:false Expired:false}\n" +
		"8 by {Member:1 Client:false User: Cut:false Expired:false}\n" +
		"7 by {Member:1 Client:false User: Cut:false Expired:true}\n" +
		"6 by {Member:1 Client:false User: Cut:false Expired:false}\n" +
		"5 by {Member:1 Client:false User: Cut:false Expired:false}\n" +
		"4 by {Member:99 Client:true User:bob Cut:false Expired:false}\n" +
		"3 by {Member:1 Client:false User:ann Cut:false Expired:false}\n" +
		"2 by <nil>\n"
	if got := b.authorsOf("k"); got != want {
		t.Errorf("%s", got)
	}
}

func (b *bench) authorsOf(key string) (text string) {
	b.t.Helper()
	page, err := b.m.Store().Versions(&mvcc.VersionQuery{Key: []byte(key), Authors: true, Limit: 100, Bytes: 1 << 20},
		unlimited{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, v := range page.Versions {
		if v.By == nil {
			text += fmt.Sprintf("%d by <nil>\n", v.ModRevision)
		} else {
			text += fmt.Sprintf("%d by %+v\n", v.ModRevision, *v.By)
		}
	}
	return text
}
