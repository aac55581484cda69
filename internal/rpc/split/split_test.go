package split_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/rpc/split"
)

const ms = time.Millisecond

// passage is one of member 1 whose request left after 5 ms.
func passage(leader, by consensus.MemberID, known, ready time.Duration, disk, all uint32) proposals.Passage {
	begun := time.Unix(1000, 0)
	return proposals.Passage{
		Left: begun.Add(5 * ms), Known: begun.Add(known), Ready: begun.Add(ready), Leader: leader,
		Waited: consensus.Waited{WaitedFor: by, DiskTook: 1000 * disk, AllTook: 1000 * all},
	}
}

// Ensure that times are split as they were, and that the member is named which took most of the wait; that no claim of another
// member counts for more than the wait; and that no member is named of which nothing is known.
func TestNew(t *testing.T) {
	for _, row := range []struct {
		name    string
		p       proposals.Passage
		read    time.Duration
		network time.Duration
		sync    time.Duration
		apply   time.Duration
		member  consensus.MemberID
		part    split.Part
	}{
		{"the leader, another's disk", passage(1, 2, 105*ms, 105*ms, 90, 100), 0, 10 * ms, 90 * ms, 95 * ms, 2, split.Disk},
		{"the leader, another's link", passage(1, 2, 105*ms, 105*ms, 10, 100), 0, 90 * ms, 10 * ms, 95 * ms, 2, split.Link},
		{"the leader, its own disk", passage(1, 1, 105*ms, 105*ms, 99, 100), 0, ms, 99 * ms, 95 * ms, 1, split.Disk},
		{"a disk that claims more than it can", passage(1, 2, 105*ms, 105*ms, 4000, 100), 0, 0, 100 * ms, 95 * ms, 2, split.Disk},
		{"a follower, the leader waits for another's disk", passage(3, 2, 105*ms, 105*ms, 80, 90), 0, 20 * ms, 80 * ms, 95 * ms, 2, split.Disk},
		{"a follower, the leader waits for another's link", passage(3, 2, 105*ms, 105*ms, 10, 80), 0, 90 * ms, 10 * ms, 95 * ms, 2, split.Link},
		{"a follower, its own link", passage(3, 2, 105*ms, 105*ms, 10, 30), 0, 90 * ms, 10 * ms, 95 * ms, 3, split.Link},
		{"a follower, the leader waits for it", passage(3, 1, 105*ms, 105*ms, 10, 90), 0, 90 * ms, 10 * ms, 95 * ms, 3, split.Link},
		{"a follower, its disk after the commit", passage(3, 2, 15*ms, 105*ms, 1, 8), 0, 9 * ms, 91 * ms, 95 * ms, 1, split.Disk},
		{"a leader that claims more than it can", passage(3, 2, 105*ms, 105*ms, 0, 9000), 0, 100 * ms, 0, 95 * ms, 2, split.Link},
		{"a leader that says nothing", passage(3, 0, 105*ms, 105*ms, 0, 0), 0, 100 * ms, 0, 95 * ms, 3, ""},
		{"a witness", passage(3, 4, 105*ms, 105*ms, 20, 0), 0, 80 * ms, 20 * ms, 95 * ms, 4, split.Link},
		{"a read of the store", passage(1, 2, 105*ms, 105*ms, 0, 0), 60 * ms, 100 * ms, 0, 35 * ms, 2, split.Link},
		{"alone", passage(1, 0, 5*ms, 5*ms, 0, 0), 0, 0, 0, 195 * ms, 0, ""},
	} {
		begun := time.Unix(1000, 0)
		s, known := split.New(1, begun, begun.Add(200*ms), row.p, row.read)
		if !known || s.Queue != 5*ms || s.Network != row.network || s.Sync != row.sync || s.Apply != row.apply || s.Read != row.read ||
			s.Member != row.member || s.Part != row.part {
			t.Errorf("%s: got %+v, %t", row.name, s, known)
		}
		checkSpans(t, row.name, begun, begun.Add(200*ms), &s)
	}
}

// checkSpans checks that the spans of a split lie one after another, from end to end, and take what it says.
func checkSpans(t *testing.T, name string, begun, ended time.Time, s *split.Split) {
	t.Helper()
	took, at := map[string]time.Duration{}, begun
	for _, span := range s.Spans(func(id consensus.MemberID) string { return fmt.Sprint("m", uint64(id)) }) {
		if !span.Begun.Equal(at) {
			t.Errorf("%s: %s begins at %v, want %v", name, span.Name, span.Begun, at)
		}
		at = span.Ended
		took[span.Name] += span.Ended.Sub(span.Begun)
		for _, inside := range span.Inside {
			if inside.Begun.Before(span.Begun) || inside.Ended.After(span.Ended) {
				t.Errorf("%s: %s lies outside of %s", name, inside.Name, span.Name)
			}
			took[inside.Name] += inside.Ended.Sub(inside.Begun)
			took[span.Name] -= inside.Ended.Sub(inside.Begun)
		}
	}
	want := map[string]time.Duration{"queue": s.Queue, "network": s.Network, "sync": s.Sync, "apply": s.Apply, "read": s.Read}
	for part, d := range want {
		if took[part] != d {
			t.Errorf("%s: the spans %s took %v, want %v", name, part, took[part], d)
		}
	}
	if !at.Equal(ended) {
		t.Errorf("%s: the last span ends at %v, want %v", name, at, ended)
	}
}

// Ensure that nothing is split of which nothing is known, and that a read that joined a question which had left before counts from
// its own beginning.
func TestNew_unknown(t *testing.T) {
	begun := time.Unix(1000, 0)
	if s, known := split.New(1, begun, begun.Add(ms), proposals.Passage{}, 0); known || len(s.Log(nil)) > 0 || len(s.Spans(nil)) > 0 {
		t.Errorf("got %+v", s)
	}
	s, known := split.New(1, begun, begun.Add(10*ms), proposals.Passage{
		Left: begun.Add(-5 * ms), Known: begun.Add(-ms), Ready: begun.Add(3 * ms), Leader: 2,
	}, 0)
	if !known || s.Queue != 0 || s.Network != 0 || s.Sync != 3*ms || s.Apply != 7*ms {
		t.Errorf("got %+v", s)
	}
}
