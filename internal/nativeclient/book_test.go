package nativeclient_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/nativeclient"
)

// at is where member id advertises.
func at(id uint64) string { return fmt.Sprintf("http://m%d:2379", id) }

func placesOf(ids ...uint64) (all []nativeclient.Place) {
	for _, id := range ids {
		all = append(all, nativeclient.Place{ID: id, Endpoints: []string{at(id)}})
	}
	return all
}

func inForce(index uint64, voters ...uint64) *quoratepb.MemberStatus {
	return &quoratepb.MemberStatus{
		Cluster: 7, Member: voters[0], Leader: voters[0], Voters: voters,
		TermConfig: &quoratepb.TermConfig{Term: 1, ConfigTerm: 1, ConfigIndex: index},
	}
}

// list is a listing as package client does it, where the members of up answer.
func list(t *testing.T, b *nativeclient.Book, now time.Time, up ...uint64) {
	t.Helper()
	b.Ask(now)
	if err := b.Listed(7, placesOf(up...), true); err != nil {
		t.Fatal(err)
	}
	ask := func(endpoints []string) {
		for _, endpoint := range endpoints {
			i := slices.IndexFunc(up, func(id uint64) bool { return at(id) == endpoint })
			if i < 0 {
				b.Silent(endpoint)
			} else if err := b.Heard(endpoint, 7, up[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask(b.Settle())
	ask(b.Successors())
}

// Ensure that a client which is told of other voters lists the members at once, and finds each voter, although every member
// that it was given is replaced.
func TestBook_everyMemberIsReplaced(t *testing.T) {
	now := time.Unix(1000, 0)
	b := nativeclient.NewBook([]string{at(1)})
	if b.Wait(now) != 0 {
		t.Error("a client that has listed nothing waits")
	}
	list(t, b, now, 1, 2, 3)
	voters := []uint64{1, 2, 3}
	for next := uint64(4); next <= 6; next++ {
		if err := b.NoteStatus(at(voters[0]), inForce(next*10, voters...)); err != nil {
			t.Fatal(err)
		}
		list(t, b, now, voters...)
		if wait := b.Wait(now); wait != nativeclient.ListInterval {
			t.Errorf("nothing happened, and the next listing is in %v", wait)
		}
		voters = append(voters[1:], next)
		if err := b.NoteStatus(at(voters[0]), inForce(next*10+1, voters...)); err != nil {
			t.Fatal(err)
		}
		if wait := b.Wait(now); wait != 0 {
			t.Errorf("voters are %v now, and the members are listed in %v", voters, wait)
		}
		list(t, b, now, voters...)
		for _, id := range voters {
			if to := b.ToMember(id, false); !slices.Contains(to, at(id)) {
				t.Errorf("the voters are %v, and %d is at %v", voters, id, to)
			}
		}
		if reads := b.Reads(); slices.Contains(reads, at(next-3)) || !slices.Contains(reads, at(next)) {
			t.Errorf("the voters are %v, and reads go to %v", voters, reads)
		}
	}
	if first, others := b.Writes(); len(first) != 0 || !slices.Equal(others[:3], []string{at(4), at(5), at(6)}) {
		t.Errorf("writes go to %v, then %v", first, others)
	}
}

// Ensure that the control which drops the rule loses the cluster once the member that was given is gone.
func TestBook_Stays_losesTheCluster(t *testing.T) {
	for _, stays := range []bool{false, true} {
		now := time.Unix(1000, 0)
		b := nativeclient.NewBook([]string{at(1)})
		b.Stays = stays
		list(t, b, now, 1, 2, 3)
		if err := b.NoteStatus(at(2), inForce(11, 2, 3, 4)); err != nil {
			t.Fatal(err)
		}
		list(t, b, now, 2, 3, 4)
		if reads := b.Reads(); slices.Contains(reads, at(4)) == stays {
			t.Errorf("Stays is %v, the voters are 2, 3 and 4, and reads go to %v", stays, reads)
		}
	}
}

// Ensure that reads stay where the user sent them while the members there are members, whichever others come and go.
func TestBook_Reads_stay(t *testing.T) {
	now := time.Unix(1000, 0)
	b := nativeclient.NewBook([]string{at(1), "lb:2379"})
	list(t, b, now, 1, 2, 3)
	list(t, b, now, 1, 3, 4)
	if reads := b.Reads(); !slices.Equal(reads, []string{at(1), "lb:2379"}) {
		t.Errorf("reads go to %v", reads)
	}
	b.Silent(at(1))
	if b.Successors() != nil && b.Reads()[0] != at(1) {
		t.Errorf("reads go to %v", b.Reads())
	}
	b.Silent("lb:2379")
	if ask := b.Successors(); !slices.Equal(ask, []string{at(3), at(4)}) {
		t.Errorf("nobody that was given answers: asks %v", ask)
	}
	if reads := b.Reads(); !slices.Equal(reads, []string{at(1), "lb:2379"}) {
		t.Errorf("reads go to %v before anybody has answered there", reads)
	}
	if err := b.Heard(at(3), 8, 3); !errors.Is(err, nativeclient.ErrForeign) {
		t.Errorf("a member of another cluster: %v", err)
	}
	if err := b.Heard(at(4), 7, 4); err != nil || !slices.Equal(b.Reads(), []string{at(1), "lb:2379", at(4)}) {
		t.Errorf("reads go to %v (%v)", b.Reads(), err)
	}
}

// Ensure that a member that is missing in the list of one member that may lag does not count as gone.
func TestBook_Listed_unconfirmed(t *testing.T) {
	now := time.Unix(1000, 0)
	b := nativeclient.NewBook([]string{at(3)})
	list(t, b, now, 1, 2, 3)
	if err := b.Listed(7, placesOf(1, 2), false); err != nil || b.Successors() != nil {
		t.Errorf("a member that lags speaks for all (%v)", err)
	}
	if err := b.Listed(7, placesOf(2, 4), true); err != nil || b.Successors() == nil {
		t.Errorf("what a quorum says counts for nothing (%v)", err)
	}
	if err := b.Listed(8, placesOf(5), true); !errors.Is(err, nativeclient.ErrForeign) {
		t.Errorf("a list of another cluster: %v", err)
	}
}

// Ensure that a member which a list has as a learner is asked for writes once it is said to be a voter, also by a member that knows
// no leader: that one's list may be older, and no other may come before it is gone.
func TestBook_Writes_newVoter(t *testing.T) {
	for name, status := range map[string]*quoratepb.MemberStatus{
		"with a leader":    inForce(9, 2),
		"without a leader": {Cluster: 7, Member: 1, Voters: []uint64{2}},
	} {
		b := nativeclient.NewBook([]string{at(1)})
		list(t, b, time.Unix(1000, 0), 1)
		known := append(placesOf(1), nativeclient.Place{ID: 2, Endpoints: []string{at(2)}, Learner: true})
		if err := b.Listed(7, known, false); err != nil {
			t.Fatal(err)
		}
		if _, others := b.Writes(); len(others) > 0 {
			t.Errorf("%s: writes go to the learner, too: %v", name, others)
		}
		if err := b.NoteStatus(at(1), status); err != nil {
			t.Fatal(err)
		}
		if _, others := b.Writes(); !slices.Equal(others, []string{at(2)}) {
			t.Errorf("%s: beside the given endpoint, writes go to %v", name, others)
		}
	}
}

// Ensure that a learner is asked where the members are if no other member is there: it may be the only voter since.
func TestBook_Open_learners(t *testing.T) {
	b := nativeclient.NewBook([]string{at(1)})
	list(t, b, time.Unix(1000, 0), 1)
	if err := b.Listed(7, append(placesOf(1), nativeclient.Place{ID: 2, Endpoints: []string{at(2)}, Learner: true}), true); err != nil {
		t.Fatal(err)
	}
	if got := b.Open(); !slices.Equal(got, []string{at(1), at(2)}) {
		t.Errorf("the members are listed through %v", got)
	}
	b.Silent(at(1))
	if got := b.Open(); !slices.Equal(got, []string{at(2), at(1)}) {
		t.Errorf("without the voter the members are listed through %v", got)
	}
	if err := b.Listed(7, placesOf(2), false); err != nil {
		t.Fatal(err)
	}
	if _, others := b.Writes(); !slices.Equal(others, []string{at(2)}) {
		t.Errorf("writes go to %v", others)
	}
}

// Ensure that a voter which advertises nothing is asked for less and less often, and that a broken connection is a reason to
// list, not more than once a second.
func TestBook_Wait(t *testing.T) {
	now := time.Unix(1000, 0)
	b := nativeclient.NewBook([]string{at(1)})
	list(t, b, now, 1, 2)
	if err := b.NoteStatus(at(1), inForce(10, 1, 2, 3)); err != nil {
		t.Fatal(err)
	}
	last := time.Duration(0)
	for range 12 {
		list(t, b, now, 1, 2)
		wait := b.Wait(now)
		if wait < last || wait > nativeclient.ListInterval || wait == 0 {
			t.Fatalf("waits %v, then %v", last, wait)
		}
		last, now = wait, now.Add(wait)
	}
	if last != nativeclient.ListInterval {
		t.Errorf("a voter that does not say where it is is asked for each %v", last)
	}
	list(t, b, now, 1, 2, 3)
	b.Broken()
	if wait := b.Wait(now); wait <= 0 || wait >= nativeclient.ListInterval {
		t.Errorf("a connection ended, and the members are listed in %v", wait)
	}
}

// Ensure that other endpoints of the user take effect at once.
func TestBook_Give(t *testing.T) {
	now := time.Unix(1000, 0)
	b := nativeclient.NewBook([]string{at(1)})
	list(t, b, now, 2, 3)
	list(t, b, now, 2, 3)
	if reads := b.Reads(); !slices.Equal(reads, []string{at(1), at(2), at(3)}) {
		t.Errorf("nobody is at %s, and reads go to %v", at(1), reads)
	}
	if b.Give([]string{at(1)}) {
		t.Error("the same endpoints count as others")
	}
	if !b.Give([]string{"m3:2379"}) || !b.Given(at(3)) || !slices.Equal(b.Reads(), []string{"m3:2379"}) {
		t.Errorf("reads go to %v", b.Reads())
	}
	if first, others := b.Writes(); !slices.Equal(first, []string{"m3:2379"}) || !slices.Equal(others, []string{at(2)}) {
		t.Errorf("writes go to %v, then %v", first, others)
	}
}

// Ensure that a client whose first listings no member answers pauses between them, and for longer each time.
func TestBook_nobodyAnswersAtFirst(t *testing.T) {
	b, now := nativeclient.NewBook([]string{"a"}), time.Unix(1000, 0)
	var before time.Duration
	for i := range 10 {
		b.Ask(now)
		b.Unlisted()
		wait := b.Wait(now)
		if wait < 250*time.Millisecond || wait < before || wait > nativeclient.ListInterval {
			t.Fatalf("after %d listings the next one is in %v, and was in %v before", i+1, wait, before)
		}
		before, now = wait, now.Add(wait)
	}
	if before != nativeclient.ListInterval {
		t.Errorf("the pause is %v in the end", before)
	}
}
