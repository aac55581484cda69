package transport_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/transport"
)

// far makes a member send everything as late as a table says, by the id of the receiver.
func far(delays map[consensus.MemberID]time.Duration) func(*transport.Options) {
	return func(o *transport.Options) {
		o.Delay = func(to consensus.Member) time.Duration { return delays[to.ID] }
	}
}

// Ensure that the distance that members measure is the sum of both ways, that it is theirs alone, and that messages come
// in order in spite of it.
func TestTransport_Delay(t *testing.T) {
	a := start(t, 1, far(map[consensus.MemberID]time.Duration{2: 150 * time.Millisecond}))
	b := start(t, 2, far(map[consensus.MemberID]time.Duration{1: 100 * time.Millisecond}))
	c := start(t, 3)
	acquaint(a, b, c)
	for _, pair := range [][2]*member{{a, b}, {b, a}} {
		if got, ok := pair[0].Distance(pair[1].id); !ok || got < 250*time.Millisecond {
			t.Errorf("%s to %s: measured %v, want at least 250ms", pair[0].id, pair[1].id, got)
		}
		if got, _ := pair[0].RTT(pair[1].id); got < 250*time.Millisecond {
			t.Errorf("%s to %s: smoothed %v, want at least 250ms", pair[0].id, pair[1].id, got)
		}
	}
	late := time.After(patience)
	for got, _ := a.Distance(c.id); got >= 100*time.Millisecond; got, _ = a.Distance(c.id) {
		select {
		case <-late:
			t.Fatalf("a member that is near: measured %v", got)
		default:
			osYield()
		}
	}
	const count = 500
	began := time.Now()
	for i := consensus.Index(1); i <= count; i++ {
		a.Send([]consensus.Message{appendMessage(1, 2, i, 1000)})
	}
	for i := consensus.Index(1); i <= count; i++ {
		got := b.next()
		if took := time.Since(began); i == 1 && took < 150*time.Millisecond {
			t.Errorf("the first message took %v, want at least 150ms", took)
		}
		if got.Match.Index != i {
			t.Fatalf("got message %d, want %d", got.Match.Index, i)
		}
	}
	none(t, a.lost, "lost peer")
}

// Ensure that a member that only answers is as far away as one that asks: the connection is the other's, and tells who that
// is.
func TestTransport_Delay_ofAnswers(t *testing.T) {
	a := start(t, 1)
	b := start(t, 2, far(map[consensus.MemberID]time.Duration{1: 100 * time.Millisecond}))
	b.call = func(context.Context, string, []byte) ([]byte, error) { return []byte("well"), nil }
	b.snapshot = func(_ consensus.MemberID, _ consensus.SnapshotMeta, r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	acquaint(a, b)
	if got, ok := a.Distance(2); !ok || got < 100*time.Millisecond {
		t.Errorf("measured %v, want at least 100ms", got)
	}
	began := time.Now()
	if _, err := a.Call(t.Context(), 2, "how are you", nil, mostAnswer); err != nil || time.Since(began) < 100*time.Millisecond {
		t.Errorf("a call took %v and got %v, want at least 100ms", time.Since(began), err)
	}
	began = time.Now()
	err := a.SendSnapshot(t.Context(), 2, consensus.SnapshotMeta{}, func(w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<20))
		return err
	})
	if took := time.Since(began); err != nil || took < 200*time.Millisecond {
		t.Errorf("a snapshot took %v and got %v, want at least two answers of 100ms", took, err)
	}
}

// Ensure that members are asked for by all that the configuration knows of them, again when it changes.
func TestTransport_Delay_knowsNames(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	a, b := start(t, 1, func(o *transport.Options) {
		o.Delay = func(to consensus.Member) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			if to.Name != "" {
				asked = append(asked, to.Name)
			}
			return 0
		}
	}), start(t, 2)
	a.SetPeers([]consensus.Member{{ID: 2, Name: "eu", PeerURLs: []string{b.url}}})
	a.waitFor(2)
	a.SetPeers([]consensus.Member{{ID: 2, Name: "ap", PeerURLs: []string{b.url}}})
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 2 || asked[0] != "eu" || asked[1] != "ap" {
		t.Errorf("asked for %q, want eu, ap", asked)
	}
}
