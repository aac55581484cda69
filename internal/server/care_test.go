package server

import (
	"testing"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/membership"
)

func TestServer_carePolicy(t *testing.T) {
	for _, row := range []struct {
		name string
		args []string
		want membership.Policy
		on   bool
	}{
		{"by default nobody acts", nil, membership.Policy{
			Mode: membership.ModeOff, DeadAfterMS: 600_000, StableMS: 10_000, MaxPerHour: 3}, false},
		{"all set", []string{"--auto-care=auto", "--auto-care-dead-after=30s", "--auto-care-voters=5", "--election-timeout=3000"},
			membership.Policy{Mode: membership.ModeAuto, DeadAfterMS: 30_000, Voters: 5, StableMS: 15_000, MaxPerHour: 3}, true},
		{"advice alone", []string{"--auto-care=suggest"}, membership.Policy{
			Mode: membership.ModeSuggest, DeadAfterMS: 600_000, StableMS: 10_000, MaxPerHour: 3}, true},
	} {
		cfg, err := config.Load(append(row.args, "--data-dir="+t.TempDir()), nil)
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		got := (&Server{cfg: cfg}).carePolicy()
		if got != row.want || got.On() != row.on {
			t.Errorf("%s: got %+v, want %+v", row.name, got, row.want)
		}
	}
}
