package transport_test

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/transport"
)

var meta = consensus.SnapshotMeta{
	Position: consensus.Position{Index: 77, Term: 5},
	ConfigID: consensus.ConfigID{Index: 4, Term: 1},
	Config: consensus.Config{Voters: []consensus.MemberID{1, 2}, Members: []consensus.Member{
		{ID: 1, Name: "one", PeerURLs: []string{"http://one:1"}}, {ID: 2, Name: "two"}}},
}

// noise writes size bytes of pseudo-random data and returns their sum.
func noise(w io.Writer, size int) (sum uint32, err error) {
	source := rand.NewChaCha8([32]byte{1})
	buffer := make([]byte, 100_000)
	for size > 0 {
		piece := buffer[:min(size, len(buffer))]
		_, _ = source.Read(piece)
		sum = crc32.Update(sum, crc32.IEEETable, piece)
		if _, err := w.Write(piece); err != nil {
			return 0, err
		}
		size -= len(piece)
	}
	return sum, nil
}

func TestTransport_SendSnapshot(t *testing.T) {
	const size = 100_000_000
	a, b := start(t, 1), start(t, 2)
	sums, peak := make(chan uint32, 1), uint64(0)
	alive := func() uint64 {
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return memory.HeapAlloc
	}
	alive() // a pool's buffers outlive one collection
	before := alive()
	b.snapshot = func(from consensus.MemberID, got consensus.SnapshotMeta, r io.Reader) error {
		if from != 1 || got.Position != meta.Position || got.ConfigID != meta.ConfigID || len(got.Config.Members) != 2 {
			t.Errorf("got %+v from %s, want %+v from 1", got, from, meta)
		}
		hash := crc32.NewIEEE()
		var total int64
		for {
			n, err := io.CopyN(hash, r, 10<<20)
			total += n
			peak = max(peak, alive())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		if total != size {
			t.Errorf("got %d bytes, want %d", total, size)
		}
		sums <- hash.Sum32()
		return nil
	}
	acquaint(a, b)
	var want uint32
	err := a.SendSnapshot(context.Background(), 2, meta, func(w io.Writer) (err error) {
		want, err = noise(w, size)
		if s := a.Stats().Snapshots; len(s) != 1 || !s[0].Outgoing || s[0].Peer != 2 || s[0].Bytes < size/2 {
			t.Errorf("got progress %+v", s)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := receive(t, sums, "the snapshot"); got != want {
		t.Errorf("got sum %x, want %x", got, want)
	}
	// Memory that earlier tests left does not count.
	if peak > before+64<<20 {
		t.Errorf("%d bytes of heap were in use, %d before: flow control does not hold", peak, before)
	}
	if s := a.Stats().Snapshots; len(s) != 0 {
		t.Errorf("still in progress: %+v", s)
	}
}

func TestTransport_SendSnapshot_failures(t *testing.T) {
	broken := errors.New("disk on fire")
	tiny := func(w io.Writer) error { _, err := noise(w, 1000); return err }
	readAll := func(_ consensus.MemberID, _ consensus.SnapshotMeta, r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	for _, row := range []struct {
		name    string
		to      consensus.MemberID
		write   func(io.Writer) error
		receive func(consensus.MemberID, consensus.SnapshotMeta, io.Reader) error
		check   func(sent, received error) bool
	}{
		{"an unknown peer", 9, tiny, readAll, func(sent, _ error) bool {
			return errors.Is(sent, transport.ErrUnknownPeer)
		}},
		{"a sender that fails in the middle", 2, func(w io.Writer) error {
			if _, err := noise(w, 1<<20); err != nil {
				return err
			}
			return broken
		}, readAll, func(sent, received error) bool {
			return errors.Is(sent, broken) && received != nil && !errors.Is(received, io.EOF)
		}},
		{"a receiver that refuses at once", 2, func(w io.Writer) error { _, err := noise(w, 20<<20); return err },
			func(consensus.MemberID, consensus.SnapshotMeta, io.Reader) error {
				return status.Error(codes.ResourceExhausted, "disk full")
			}, func(sent, _ error) bool { return status.Code(errors.Unwrap(sent)) == codes.ResourceExhausted }},
		{"a receiver that does not read to the end", 2, tiny,
			func(consensus.MemberID, consensus.SnapshotMeta, io.Reader) error { return nil },
			func(sent, _ error) bool { return status.Code(errors.Unwrap(sent)) == codes.Internal }},
		{"an empty snapshot is whole", 2, func(io.Writer) error { return nil }, readAll,
			func(sent, received error) bool { return sent == nil && received == nil }},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := start(t, 1), start(t, 2)
			received := make(chan error, 1)
			b.snapshot = func(from consensus.MemberID, m consensus.SnapshotMeta, r io.Reader) error {
				err := row.receive(from, m, r)
				received <- err
				return err
			}
			acquaint(a, b)
			sent := a.SendSnapshot(context.Background(), row.to, meta, row.write)
			var got error
			if row.to == 2 {
				got = receive(t, received, "the receiver's verdict")
			}
			if !row.check(sent, got) {
				t.Errorf("sender: %v; receiver: %v", sent, got)
			}
		})
	}
}

func TestTransport_SendSnapshot_cancel(t *testing.T) {
	for _, row := range []string{"by its context", "by Close of the sender", "by Close of the receiver"} {
		t.Run(row, func(t *testing.T) {
			a, b := start(t, 1), start(t, 2)
			began, received := make(chan struct{}), make(chan error, 1)
			b.snapshot = func(_ consensus.MemberID, _ consensus.SnapshotMeta, r io.Reader) error {
				close(began)
				_, err := io.Copy(io.Discard, r)
				received <- err
				return err
			}
			acquaint(a, b)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			sent := make(chan error, 1)
			go func() {
				sent <- a.SendSnapshot(ctx, 2, meta, func(w io.Writer) error { _, err := noise(w, 1<<50); return err })
			}()
			receive(t, began, "the receiver")
			switch row {
			case "by its context":
				cancel()
			case "by Close of the sender":
				_ = a.Close()
			default:
				_ = b.Close()
			}
			if err := receive(t, sent, "the sender's error"); err == nil {
				t.Error("sender: no error")
			}
			if err := receive(t, received, "the receiver's error"); err == nil {
				t.Error("receiver: no error")
			}
		})
	}
}

func TestTransport_SendSnapshot_limited(t *testing.T) {
	one := func(o *transport.Options) { o.Snapshot.Most = 1 }
	a, b, c := start(t, 1, one), start(t, 2, one), start(t, 3)
	entered, release := make(chan struct{}, 2), make(chan struct{})
	b.snapshot = func(_ consensus.MemberID, _ consensus.SnapshotMeta, r io.Reader) error {
		entered <- struct{}{}
		<-release
		_, err := io.Copy(io.Discard, r)
		return err
	}
	acquaint(a, b, c)
	empty := func(io.Writer) error { return nil }
	first := make(chan error, 1)
	go func() { first <- a.SendSnapshot(context.Background(), 2, meta, empty) }()
	receive(t, entered, "the first snapshot")
	// The sender's own limit makes the second one wait; the receiver's refuses a third from elsewhere.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := a.SendSnapshot(ctx, 3, meta, empty); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("second from the same sender: got %v, want %v", err, context.DeadlineExceeded)
	}
	err := c.SendSnapshot(context.Background(), 2, meta, empty)
	if status.Code(errors.Unwrap(err)) != codes.ResourceExhausted {
		t.Errorf("second to the same receiver: got %v, want %s", err, codes.ResourceExhausted)
	}
	close(release)
	if err := receive(t, first, "the end of the first"); err != nil {
		t.Error(err)
	}
}

// Ensure that senders which are not known as members keep no place from those that are, and keep theirs only while they send.
func TestTransport_SendSnapshot_unknownSender(t *testing.T) {
	const silence = 2 * time.Second
	one := func(o *transport.Options) {
		o.Snapshot.Most = 1
		o.Hello = admission.FirstMessageLimits{Timeout: silence, Many: 100, ManyTimeout: silence}
	}
	a, b, c, d := start(t, 1), start(t, 2, one), start(t, 3), start(t, 4)
	acquaint(a, b)
	b.SetPeers([]consensus.Member{{ID: 1, PeerURLs: []string{a.url}}}) // it joins: no configuration that it knows has it
	all := []consensus.Member{{ID: 2, PeerURLs: []string{b.url}}}
	for _, unknown := range []*member{c, d} {
		unknown.SetPeers(all)
		unknown.waitFor(2)
	}
	entered := make(chan struct{}, 2)
	b.snapshot = func(from consensus.MemberID, _ consensus.SnapshotMeta, r io.Reader) error {
		if from != 1 {
			entered <- struct{}{}
		}
		_, err := io.Copy(io.Discard, r)
		return err
	}
	silent, release := make(chan error, 1), make(chan struct{})
	defer close(release)
	go func() {
		silent <- c.SendSnapshot(t.Context(), 2, meta, func(w io.Writer) error {
			_, err := w.Write(make([]byte, 1<<20))
			<-release
			return err
		})
	}()
	receive(t, entered, "the snapshot of an unknown sender")
	empty := func(io.Writer) error { return nil }
	if err := d.SendSnapshot(t.Context(), 2, meta, empty); status.Code(errors.Unwrap(err)) != codes.ResourceExhausted {
		t.Errorf("another unknown sender: got %v, want %s", err, codes.ResourceExhausted)
	}
	if err := a.SendSnapshot(t.Context(), 2, meta, empty); err != nil {
		t.Errorf("a member: got %v", err)
	}
	for late := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		err := d.SendSnapshot(t.Context(), 2, meta, empty)
		if err == nil {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("the place of a sender that is silent is taken: %v", err)
		}
	}
}
