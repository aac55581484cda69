package server

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/kv"
)

func TestAutoCompactor_observe_revisions(t *testing.T) {
	a := &autoCompactor{retention: config.Retention{Revisions: 100}}
	now := time.Unix(0, 0)
	if got := a.observe(now, 90, true); got != 0 {
		t.Errorf("at 90: got %d, want nothing", got)
	}
	if got := a.observe(now, 250, true); got != 150 {
		t.Errorf("at 250: got %d, want 150", got)
	}
	a.compacted(150)
	if got := a.observe(now, 250, true); got != 0 {
		t.Errorf("again at 250: got %d, want nothing", got)
	}
}

func TestAutoCompactor_observe_periodic(t *testing.T) {
	for _, period := range []time.Duration{10 * time.Minute, 5 * time.Hour} {
		a := &autoCompactor{retention: config.Retention{Period: period}}
		begun := time.Unix(0, 0)
		var compactions int
		for now := begun; now.Sub(begun) < 3*period; now = now.Add(a.interval()) {
			revision := kv.Revision(now.Sub(begun)/time.Second) + 1 // one a second
			target := a.observe(now, revision, true)
			if target == 0 {
				continue
			}
			compactions++
			a.compacted(target)
			age := time.Duration(revision-target) * time.Second
			if age < period || age > period+a.interval() {
				t.Errorf("period %v: after %v kept %v", period, now.Sub(begun), age)
			}
		}
		want := int(2 * period / a.step())
		if compactions < want-1 || compactions > want+1 {
			t.Errorf("period %v: %d compactions, want about %d", period, compactions, want)
		}
	}
}

// Ensure that a new leader does not wait for a whole step: it has sampled before, and knows for how long no member has
// compacted.
func TestAutoCompactor_observe_newLeader(t *testing.T) {
	a := &autoCompactor{retention: config.Retention{Period: 10 * time.Minute}}
	begun := time.Unix(0, 0)
	now := begun
	for ; now.Sub(begun) < 25*time.Minute; now = now.Add(a.interval()) {
		if got := a.observe(now, kv.Revision(now.Sub(begun)/time.Second), false); got != 0 {
			t.Fatalf("a follower compacts at %d", got)
		}
	}
	if got := a.observe(now, 1500, true); got != 900 {
		t.Errorf("got %d, want the revision of ten minutes ago, 900", got)
	}
}
