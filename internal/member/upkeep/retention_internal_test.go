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
			got, _, err := r.applied(batchOf(1, tc.entries, tc.payload), func() (consensus.Position, error) {
				return consensus.Position{Index: tc.durable}, nil
			})
			if err != nil || got != tc.want {
				t.Errorf("got %d, %v, want %d", got, err, tc.want)
			}
		})
	}
}

// Ensure that a flush begins when much is not durable, neither while one runs nor for what the store has flushed by itself.
func TestRetainer_flush(t *testing.T) {
	r := NewRetainer(RetainerOptions{
		Retention: Retention{CatchUpEntries: 1, CatchUpBytes: 1 << 30, Slack: 1 << 20, FlushBytes: 1700},
	})
	reads, last := 0, consensus.Index(0)
	apply := func(entries consensus.Index, durable consensus.Index) bool {
		t.Helper()
		_, flush, err := r.applied(batchOf(last+1, last+entries, 100), func() (consensus.Position, error) {
			reads++
			return consensus.Position{Index: durable}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		last += entries
		return flush
	}
	if apply(5, 0) || reads != 0 {
		t.Errorf("flush due after %d bytes, %d reads", r.unflushed, reads)
	}
	if !apply(5, 0) || reads != 1 {
		t.Errorf("no flush due after %d bytes, %d reads", r.unflushed, reads)
	}
	r.flushing.Store(true)
	if apply(20, 0) || reads != 1 {
		t.Errorf("a second flush is due while the first runs, or %d reads", reads)
	}
	r.flushing.Store(false)
	if apply(5, 30) || reads != 2 {
		t.Errorf("flush due after %d bytes that are not durable, %d reads", r.unflushed, reads)
	}
	if apply(1, 30) || reads != 2 {
		t.Errorf("%d reads of what is durable, want 2", reads)
	}
	if !apply(5, 30) || reads != 3 {
		t.Errorf("no flush due after %d bytes, %d reads", r.unflushed, reads)
	}
}

// Ensure that what is durable is not read again for each batch while the store is behind.
func TestRetainer_applied_reads(t *testing.T) {
	r := NewRetainer(RetainerOptions{
		Retention: Retention{CatchUpEntries: 100, CatchUpBytes: 1 << 20, Slack: checkEvery, FlushBytes: 1 << 30},
	})
	reads := 0
	for i := range consensus.Index(1 << 10) { // 16 MiB
		if _, _, err := r.applied(batchOf(i+1, i+1, 1<<14), func() (consensus.Position, error) {
			reads++
			return consensus.Position{}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if most := 16 * checkPart; reads > most || reads < most/2 {
		t.Errorf("what is durable was read %d times, want up to %d", reads, most)
	}
}
