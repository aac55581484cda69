package health_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/rpc/health"
)

// hung is a member that must not be asked anything.
type hung struct{ t *testing.T }

func (h hung) asked() { h.t.Error("a member that hangs was asked") }

func (h hung) Leader() consensus.MemberID        { h.asked(); return 1 }
func (h hung) Learner() bool                     { h.asked(); return false }
func (h hung) Corrupt() bool                     { h.asked(); return false }
func (h hung) ReadIndex(context.Context) error   { h.asked(); return nil }
func (h hung) Machine() (*apply.Machine, func()) { h.asked(); return nil, func() {} }

// Ensure that a member that hangs is asked nothing, and that it counts as not ready long before it counts as dead.
func TestChecker_hangs(t *testing.T) {
	for _, row := range []struct {
		hangs time.Duration
		alive bool
	}{{30 * time.Second, true}, {10 * time.Minute, false}} {
		c := health.New(health.Options{Member: hung{t}, Logger: slog.New(slog.DiscardHandler), Stalled: func(limit time.Duration) error {
			if row.hangs > limit {
				return errors.New("it hangs")
			}
			return nil
		}})
		reads := map[string]bool{"serializable_read": row.alive} // asks the member where it is not known to hang
		for _, group := range c.Groups() {
			if group.Name == "readyz" {
				reads = nil
			}
			report, healthy := c.Run(t.Context(), group.Checks, reads, "/")
			if want := group.Name == "livez" && row.alive; healthy != want {
				t.Errorf("%s of a member that hangs for %v: healthy %v, want %v", group.Name, row.hangs, healthy, want)
			}
			if want := len(group.Checks); !healthy && strings.Count(report, "[-]") != want {
				t.Errorf("%s: got %s, want %d failures", group.Name, report, want)
			}
		}
		if reason := c.Unhealthy(t.Context(), nil, true, "/"); reason != "NO PROGRESS:it hangs" {
			t.Errorf("got %q", reason)
		}
	}
}
