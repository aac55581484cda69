package member

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that a removed member turns clients away only once it has applied its removal, and waits for their requests, but not
// for ever.
func TestDeparture_leave(t *testing.T) {
	removed := &consensus.Config{Voters: []consensus.MemberID{2}, Members: []consensus.Member{{ID: 2}}}
	for _, row := range []struct {
		name          string
		applied, done bool
		leaving       bool
		took          time.Duration
	}{
		{"its removal never comes", false, false, false, time.Second},
		{"nobody waits", true, true, true, 0},
		{"somebody waits for ever", true, false, true, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var d departure
			d.init()
			d.note(&consensus.Config{}, 1) // the member knows no configuration yet
			if row.applied {
				d.note(removed, 1)
			}
			if row.done {
				d.depart()
			}
			begun := time.Now()
			d.leave(t.Context(), time.Second, 10*time.Millisecond)
			leaving := false
			select {
			case <-d.leaving:
				leaving = true
			default:
			}
			if took := time.Since(begun); leaving != row.leaving || took != row.took {
				t.Errorf("%s: leaving %t after %v", row.name, leaving, took)
			}
		})
	}
}
