package gate

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/admission"
)

func newStreams(many, renewals int64) *streams {
	return &streams{held: admission.NewLedger(many * StreamBytes), renewals: admission.NewLedger(renewals * StreamBytes),
		open: map[*place]struct{}{}}
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
	s, ended, now := newStreams(64, 16), 0, time.Now()
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

// Ensure that streams that say nothing, or have nobody who has logged in, end when their room is needed, after ten seconds.
func TestStreams_enter_silent(t *testing.T) {
	for _, row := range []struct {
		name          string
		says, unknown bool
		ends          bool
	}{{"say nothing", false, false, true}, {"are nobody's", true, true, true}, {"watch", true, false, false}} {
		s, ended, now := newStreams(16, 2), 0, time.Now()
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
