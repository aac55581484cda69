package raftlog_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raftlog"
)

func entriesAfter(position consensus.Position, term consensus.Term, n int, bytes int) []consensus.Entry {
	var entries []consensus.Entry
	for i := range n {
		entries = append(entries, consensus.Entry{
			Index: position.Index + consensus.Index(i+1), Term: term, Payload: make([]byte, bytes),
		})
	}
	return entries
}

func size(entries []consensus.Entry) int {
	sum := 0
	for i := range entries {
		sum += entries[i].SizeBytes()
	}
	return sum
}

// restored returns a log found on disk.
func restored(t *testing.T, base consensus.Position, entries []consensus.Entry, applied, commit consensus.Index,
	limit int) raftlog.Log {
	t.Helper()
	l, err := raftlog.Restore(base, entries, applied, commit, limit)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Ensure that the laws and the sizes hold whatever happens to a log in whatever order.
func TestLog_laws(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		l := restored(t, consensus.Position{Index: 5, Term: 1}, nil, 0, 0, 2000)
		term, seq := consensus.Term(2), uint64(0)
		for now := range uint64(300) {
			switch rng.IntN(9) {
			case 0, 1:
				l.Append(entriesAfter(l.LastPosition(), term, 1+rng.IntN(3), rng.IntN(200))...)
			case 2:
				seq++
				if entries := l.Write(seq, now); len(entries) > 0 && l.Unsent() {
					t.Fatalf("seed %d: entries are left after a request", seed)
				}
			case 3:
				l.Persisted(seq - min(seq, rng.Uint64N(3)))
			case 4:
				if l.Commit() < l.Last() {
					l.CommitTo(l.Commit() + 1 + consensus.Index(rng.IntN(int(l.Last()-l.Commit()))))
				}
			case 5:
				l.HandOut(500, now)
			case 6:
				if l.Applied() < l.Handed() {
					l.ApplyTo(l.Applied()+1, now)
				}
			case 7:
				l.Compact(l.Applied())
			case 8:
				if l.Commit() < l.Last() {
					term++
					l.Truncate(l.Commit() + 1 + consensus.Index(rng.IntN(int(l.Last()-l.Commit()))))
				}
			}
			if !l.Ordered() {
				t.Fatalf("seed %d, step %d: %+v", seed, now, l)
			}
			want := raftlog.Bytes{
				Held:     size(l.Slice(l.Base().Index+1, l.Last())),
				Ready:    size(l.Slice(l.Applied()+1, l.Commit())),
				Applying: size(l.Slice(l.Applied()+1, l.Handed())),
			}
			if l.Bytes() != want {
				t.Fatalf("seed %d, step %d: sizes are %+v, want %+v", seed, now, l.Bytes(), want)
			}
		}
	}
}

// Ensure that what a reader was given stays as it is when the log is truncated and grows again.
func TestLog_Slice_shared(t *testing.T) {
	l := restored(t, consensus.Position{Index: 1, Term: 1}, entriesAfter(consensus.Position{Index: 1}, 1, 4, 0), 0, 2, 1000)
	before := l.Slice(2, 5)
	kept := slices.Clone(before)
	l.Truncate(4)
	l.Append(entriesAfter(l.LastPosition(), 7, 3, 0)...)
	for i := range before {
		if before[i].Term != kept[i].Term {
			t.Errorf("entry %d was overwritten: term %d, before %d", before[i].Index, before[i].Term, kept[i].Term)
		}
	}
}

// Ensure that a persist request that completes late makes nothing durable that was truncated meanwhile.
func TestLog_Persisted_truncated(t *testing.T) {
	l := restored(t, consensus.Position{Index: 1, Term: 1}, nil, 0, 0, 1000)
	l.Append(entriesAfter(l.LastPosition(), 1, 4, 0)...)
	l.Write(1, 10)
	l.Truncate(3)
	l.Append(entriesAfter(l.LastPosition(), 2, 2, 0)...)
	if l.Persisted(1); l.Durable() != 2 {
		t.Errorf("durable up to %d, want 2", l.Durable())
	}
	if since, writing := l.WritingSince(); writing {
		t.Errorf("a request of tick %d is still under way", since)
	}
}

// Ensure that a log with gaps, one that begins too late and one that is shorter than what was applied are refused, and that
// entries below the base are dropped.
func TestRestore(t *testing.T) {
	base := consensus.Position{Index: 5, Term: 2}
	gap := append(entriesAfter(base, 2, 1, 0), entriesAfter(consensus.Position{Index: 8}, 2, 1, 0)...)
	if _, err := raftlog.Restore(base, gap, 0, 0, 100); err == nil {
		t.Error("a log with a gap was taken")
	}
	if _, err := raftlog.Restore(base, entriesAfter(consensus.Position{Index: 6}, 2, 2, 0), 0, 0, 100); err == nil {
		t.Error("a log that begins too late was taken")
	}
	if _, err := raftlog.Restore(base, entriesAfter(base, 2, 2, 0), 8, 8, 100); err == nil {
		t.Error("a log that ends before what was applied was taken")
	}
	older := entriesAfter(consensus.Position{Index: 2}, 2, 5, 0)
	if l := restored(t, base, older, 5, 6, 100); l.Base() != base || l.Last() != 7 || l.Commit() != 6 {
		t.Errorf("base %v, last %d, commit %d", l.Base(), l.Last(), l.Commit())
	}
	if l := restored(t, consensus.Position{Index: 5, Term: 9}, older, 5, 6, 100); l.Last() != 5 {
		t.Errorf("of a log that does not contain the base, entries up to %d are left", l.Last())
	}
	if l := restored(t, consensus.Position{Index: 9, Term: 2}, older, 9, 9, 100); l.Last() != 9 {
		t.Errorf("of a log that ends before the base, entries up to %d are left", l.Last())
	}
}

// Ensure that what just fits is handed out, one entry in any case and none beyond; and that the log is full once what is ready to
// be applied reaches its limit.
func TestLog_HandOut_credit(t *testing.T) {
	base := consensus.Position{Index: 5, Term: 2}
	entries := entriesAfter(base, 2, 3, 10)
	one := size(entries[:1])
	for _, tc := range []struct{ credit, want int }{{0, 1}, {2*one - 1, 1}, {2 * one, 2}, {3*one - 1, 2}, {3 * one, 3}} {
		l := restored(t, base, entries, 5, 8, 100*one)
		if got := len(l.HandOut(tc.credit, 0)); got != tc.want {
			t.Errorf("with room for %d bytes and entries of %d, %d were handed out, want %d", tc.credit, one, got, tc.want)
		}
	}
	for _, tc := range []struct {
		limit int
		want  bool
	}{{3*one - 1, true}, {3 * one, true}, {3*one + 1, false}} {
		l := restored(t, base, entries, 5, 5, tc.limit)
		if l.CommitTo(8); l.Full() != tc.want {
			t.Errorf("with %d bytes to apply and a limit of %d: full is %v", 3*one, tc.limit, l.Full())
		}
	}
}
