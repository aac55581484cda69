package transport

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// distant is one end of a connection whose writes take a while, in the time of a bubble, and the plain other end.
func distant(t *testing.T, delay func(consensus.MemberID) time.Duration) (*delayed, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	d := newDelayed(near, delay)
	t.Cleanup(func() { _, _ = d.Close(), far.Close() })
	return d, far
}

func always(delay time.Duration) func(consensus.MemberID) time.Duration {
	return func(consensus.MemberID) time.Duration { return delay }
}

// Ensure that writes leave in order, each after its time, that they are under way together, and that the writer waits for
// none of them.
func TestDelayed_pipelines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay, count = 25 * time.Millisecond, 1000
		d, far := distant(t, always(delay))
		began := time.Now()
		write := func(first, beyond int) {
			frame := make([]byte, 8) // used again at once, as gRPC does
			for i := first; i < beyond; i++ {
				binary.LittleEndian.PutUint64(frame, uint64(i))
				if _, err := d.Write(frame); err != nil {
					t.Fatal(err)
				}
			}
		}
		write(0, count/2)
		time.AfterFunc(10*time.Millisecond, func() { write(count/2, count) })
		if took := time.Since(began); took != 0 {
			t.Errorf("the writer was held up for %v", took)
		}
		for i := range count {
			var frame [8]byte
			if _, err := io.ReadFull(far, frame[:]); err != nil {
				t.Fatal(err)
			}
			want := delay
			if i >= count/2 {
				want += 10 * time.Millisecond
			}
			if got := binary.LittleEndian.Uint64(frame[:]); got != uint64(i) || time.Since(began) != want {
				t.Fatalf("got %d after %v, want %d after %v", got, time.Since(began), i, want)
			}
		}
	})
}

// Ensure that a way that becomes shorter does not let a write overtake another, and that it counts who is at its end.
func TestDelayed_changes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, far := distant(t, func(to consensus.MemberID) time.Duration {
			if to == 7 {
				return 10 * time.Millisecond
			}
			return time.Second
		})
		began := time.Now()
		for i, to := range []uint64{0, 7} {
			d.to.Store(to)
			if _, err := d.Write([]byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
		read := func(want byte, after time.Duration) {
			var got [1]byte
			if _, err := far.Read(got[:]); err != nil || got[0] != want || time.Since(began) != after {
				t.Errorf("got %d after %v and %v, want %d after %v", got[0], time.Since(began), err, want, after)
			}
		}
		read(0, time.Second)
		read(1, time.Second)
		if _, err := d.Write([]byte{2}); err != nil {
			t.Fatal(err)
		}
		read(2, time.Second+10*time.Millisecond)
	})
}

// Ensure that what is under way is bounded, and that one write fits, however large.
func TestDelayed_bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, far := distant(t, always(time.Second))
		go func() { _, _ = io.Copy(io.Discard, far) }()
		began := time.Now()
		for i, row := range []struct {
			bytes int
			after time.Duration
		}{
			{2 * delayedBytes, 0},           // alone
			{delayedBytes / 2, time.Second}, // after it
			{delayedBytes / 2, time.Second}, // beside that
			{1, 2 * time.Second},
		} {
			if _, err := d.Write(make([]byte, row.bytes)); err != nil || time.Since(began) != row.after {
				t.Errorf("write %d: returned after %v with %v, want %v", i, time.Since(began), err, row.after)
			}
		}
	})
}

// Ensure that the end of a connection ends its writers, and what is under way. A goroutine that stays fails the bubble.
func TestDelayed_ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := distant(t, always(time.Hour))
		if _, err := d.Write(make([]byte, delayedBytes)); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { _ = d.Close() })
		if _, err := d.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a writer that waits while the connection is closed: got %v, want %v", err, net.ErrClosed)
		}
		if err := d.Close(); err != nil {
			t.Errorf("closed again: %v", err)
		}

		d, far := distant(t, always(time.Second))
		if err := far.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Write([]byte{1}); err != nil {
			t.Errorf("the first write cannot know that nobody reads: %v", err)
		}
		<-time.After(2 * time.Second)
		if _, err := d.Write([]byte{1}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the next write: got %v, want %v", err, io.ErrClosedPipe)
		}
	})
}
