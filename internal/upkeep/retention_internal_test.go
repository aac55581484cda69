package upkeep

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

func batchOf(from, to consensus.Index, payloadBytes int) []consensus.Entry {
	var batch []consensus.Entry
	for i := from; i <= to; i++ {
		batch = append(batch, consensus.Entry{Index: i, Payload: make([]byte, payloadBytes)})
	}
	return batch
}

func TestRetainer_applied(t *testing.T) {
	retention := Retention{CatchUpEntries: 100, CatchUpBytes: 1 << 20, Slack: checkEvery, FlushBytes: 1 << 30}
	for _, tc := range []struct {
		name    string
		entries consensus.Index
		payload int
		durable consensus.Index
		want    consensus.Index
	}{
		{name: "few entries stay", entries: 1000, durable: 1000, want: 0},
		{name: "many are cut to the catch-up length", entries: 2000, durable: 2000, want: 1900},
		{name: "what the store lacks durably stays", entries: 2000, durable: 700, want: 700},
		{name: "nothing durable, nothing cut", entries: 2000, durable: 0, want: 0},
		{name: "few large entries are cut by bytes", entries: 40, payload: 1<<16 - 200, durable: 40, want: 24},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := NewRetainer(RetainerOptions{Retention: retention})
			got, err := r.applied(batchOf(1, tc.entries, tc.payload), func() (consensus.Position, error) {
				return consensus.Position{Index: tc.durable}, nil
			})
			if err != nil || got != tc.want {
				t.Errorf("got %d, %v, want %d", got, err, tc.want)
			}
		})
	}
}

func TestRetainer_flushDue(t *testing.T) {
	r := NewRetainer(RetainerOptions{
		Retention: Retention{CatchUpEntries: 1, CatchUpBytes: 1 << 30, Slack: 1 << 20, FlushBytes: 1000},
	})
	never := func() (consensus.Position, error) { return consensus.Position{}, nil }
	if _, err := r.applied(batchOf(1, 10, 10), never); err != nil || r.flushDue() {
		t.Errorf("flush due after %d bytes, %v", r.unflushed, err)
	}
	if _, err := r.applied(batchOf(11, 20, 100), never); err != nil || !r.flushDue() {
		t.Errorf("no flush due after %d bytes, %v", r.unflushed, err)
	}
	if _, err := r.applied(batchOf(21, 40, 100), never); err != nil || r.flushDue() {
		t.Error("a second flush is due while the first runs")
	}
}
