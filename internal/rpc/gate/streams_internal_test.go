package gate

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/limits/admission"
)

func streamsFor(many, renewals int64) *streams {
	s := newStreams(admission.NewLedger(many*StreamBytes), admission.NewLedger(renewals*StreamBytes))
	return &s
}

// enterAt opens a stream that says something, or nothing.
func (s *streams) enterAt(at time.Time, host string, renews, says, unknown bool, ended *int) error {
	p := &place{began: at, unknown: unknown, end: func(error) { *ended++ }}
	err := s.enter(p, host, renews)
	if err == nil && says {
		s.speaks(p)
	}
	return err
}

// Ensure that no two hosts take every stream of a member, whatever they open, and that leases are renewed all the same.
func TestStreams_enter_share(t *testing.T) {
	s, ended, now := streamsFor(64, 16), 0, time.Now()
	for _, host := range []string{"a", "b"} {
		for range 100 {
			_ = s.enterAt(now, host, false, true, false, &ended)
		}
	}
	if err := s.enterAt(now, "c", false, true, false, &ended); err != nil {
		t.Errorf("a third host: %v", err)
	}
	for i := range 20 { // until nothing is left
		for range 100 {
			_ = s.enterAt(now, fmt.Sprint("more", i), false, true, false, &ended)
		}
	}
	if err := s.enterAt(now, "d", false, true, false, &ended); err != ErrTooManyStreams {
		t.Errorf("a stream of a member that is full: %v", err)
	}
	for i := range 3 {
		if err := s.enterAt(now, "d", true, true, false, &ended); err != nil {
			t.Errorf("renewal %d of a member that is full: %v", i, err)
		}
	}
	if open, refused := s.counts(); open < 60 || refused == 0 || ended > 0 {
		t.Errorf("%d are open, %d were refused, %d were ended", open, refused, ended)
	}
}

// Ensure that streams that say nothing, or have no user that has logged in, end when their room is needed, after ten seconds.
func TestStreams_enter_silent(t *testing.T) {
	for _, row := range []struct {
		name          string
		says, unknown bool
		ends          bool
	}{{"say nothing", false, false, true}, {"are nobody's", true, true, true}, {"watch", true, false, false}} {
		s, ended, now := streamsFor(16, 2), 0, time.Now()
		for range 8 {
			if err := s.enterAt(now, "a", false, row.says, row.unknown, &ended); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.enterAt(now.Add(9*time.Second), "a", false, true, false, &ended); err != ErrTooManyStreams || ended > 0 {
			t.Errorf("before ten seconds streams that %s: %v, %d were ended", row.name, err, ended)
		}
		err := s.enterAt(now.Add(11*time.Second), "a", false, true, false, &ended)
		if (err == nil) != row.ends || (ended == 8) != row.ends {
			t.Errorf("streams that %s: %v, %d were ended", row.name, err, ended)
		}
	}
}

// Ensure that a host which has all that it may have ends no streams of others, which have less, and that one which has less
// ends those of a host that has more.
func TestStreams_enter_silentOfOthers(t *testing.T) {
	s, now := streamsFor(16, 2), time.Now()
	a, b := 0, 0
	for range 3 {
		if err := s.enterAt(now, "b", false, false, false, &b); err != nil {
			t.Fatal(err)
		}
	}
	for s.enterAt(now, "a", false, true, false, &a) == nil {
	}
	if err := s.enterAt(now.Add(11*time.Second), "a", false, true, false, &a); err != ErrTooManyStreams || b > 0 {
		t.Errorf("a stream of a host that has its share: %v, %d of another host were ended", err, b)
	}

	s = streamsFor(16, 2)
	for s.enterAt(now, "a", false, false, false, &a) == nil {
	}
	for i := range 16 {
		for s.enterAt(now, fmt.Sprint("more", i), false, true, false, &b) == nil {
		}
	}
	if err := s.enterAt(now.Add(11*time.Second), "c", false, true, false, &b); err != nil || a == 0 || b > 0 {
		t.Errorf("the first stream of a host: %v, %d silent ones of a host with many were ended, %d others", err, a, b)
	}
}

// Ensure that a busy host which finds nothing to end does not keep others from finding something.
func TestStreams_enter_looksForEachHost(t *testing.T) {
	s, ended, now := streamsFor(16, 2), 0, time.Now()
	for range 2 {
		if err := s.enterAt(now, "quiet", false, false, false, &ended); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 16 {
		for s.enterAt(now, []string{"busy", fmt.Sprint("more", i)}[min(i, 1)], false, true, false, &ended) == nil {
		}
	}
	later := now.Add(silentTimeout + time.Second)
	if err := s.enterAt(later, "busy", false, true, false, &ended); err != ErrTooManyStreams || ended > 0 {
		t.Fatalf("a stream of the busy host: %v, %d were ended", err, ended)
	}
	if err := s.enterAt(later, "new", false, true, false, &ended); err != nil || ended != 2 {
		t.Errorf("the first stream of a host: %v, %d silent ones were ended", err, ended)
	}
}

// Ensure that refused streams cost no look at all that are open, each of them.
func TestStreams_enter_looksSeldom(t *testing.T) {
	s, ended, now := streamsFor(16, 2), 0, time.Now()
	for i := 0; s.enterAt(now.Add(time.Duration(i)), "a", false, false, false, &ended) == nil; i++ {
	}
	almost := now.Add(silentTimeout - evictPause/2)
	_ = s.enterAt(almost, "a", false, false, false, &ended)
	if err := s.enterAt(almost.Add(evictPause*3/4), "a", false, false, false, &ended); err != ErrTooManyStreams {
		t.Errorf("a stream soon after all were looked at: %v, %d were ended", err, ended)
	}
	if err := s.enterAt(almost.Add(evictPause), "a", false, false, false, &ended); err != nil || ended == 0 {
		t.Errorf("a stream later: %v, %d were ended", err, ended)
	}
}
