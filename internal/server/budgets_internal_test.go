package server

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/limits/memory"
)

// Ensure that --memory bounds what no flag sets, and that a flag which asks for more than it leaves is refused.
func TestNewBudgets(t *testing.T) {
	for _, tc := range []struct {
		name                  string
		args                  []string
		limit                 int64
		answers, answer, held int64
	}{
		{"no flag", nil, 4 << 30, 1015 << 19, 1015 << 19, 11165 << 16},
		{"no flag, little memory", nil, 256 << 20, 55 << 19, 55 << 19, 605 << 16},
		{"a flag that asks for less", []string{"--response-memory-bytes=8388608", "--memory=256MiB"}, 256 << 20,
			8 << 20, 8 << 20, 605 << 16},
		{"flags of a member whose memory nobody set", []string{"--response-memory-bytes=2147483648",
			"--snapshot-log-bytes=536870912"}, 256 << 20, 2 << 30, 55 << 19, 512 << 20},
		{"requests that are large", []string{"--max-request-bytes=16777216"}, 256 << 20, 55 << 19, 55 << 19, 605 << 16},
	} {
		cfg, err := config.Load(tc.args, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := newBudgets(&cfg, memory.Divide(tc.limit))
		if err != nil || b.Answers != tc.answers || b.Answer != tc.answer || b.Log.Snapshot != tc.held {
			t.Errorf("%s: got %+v, %v", tc.name, b.Shares, err)
		}
		if largest := 2 * int(cfg.Limits.MaxRequestBytes); b.watchedRevision < largest || b.watchedRevision < int(b.Watch.Host) {
			t.Errorf("%s: a revision may have %d bytes, and the largest put has %d with what it replaces", tc.name, b.watchedRevision,
				largest)
		}
		if b.held.Limit() < 8*int64(cfg.Limits.MaxRequestBytes) {
			t.Errorf("%s: clients may hold %d, which is not enough for the largest request by JSON", tc.name, b.held.Limit())
		}
		if b.Peers < 2*int64(cfg.Limits.MaxRequestBytes) {
			t.Errorf("%s: the peer port may hold %d, which is not enough for the largest request", tc.name, b.Peers)
		}
		if b.answers.MostBytes() != tc.answer {
			t.Errorf("%s: an answer may have %d", tc.name, b.answers.MostBytes())
		}
	}
	cfg, err := config.Load([]string{"--response-memory-bytes=2147483648", "--memory=512MiB"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newBudgets(&cfg, memory.Divide(512<<20)); err == nil || !strings.Contains(err.Error(), "raise --memory") {
		t.Errorf("a flag that asks for more than --memory leaves: got %v", err)
	}
	b, err := newBudgets(new(config.Default()), memory.Shares{})
	if err != nil || b.Shares.Limit != memory.DefaultMost {
		t.Errorf("nobody said anything: got %+v, %v", b.Shares, err)
	}
}
