package front

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // named by requests
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/h2"
)

// Ensure that messages come out as they went in, however they are cut, and that what a prefix only announces takes no memory.
func TestAssembler_take(t *testing.T) {
	var sent []byte
	want := [][]byte{[]byte("one"), {}, bytes.Repeat([]byte("x"), 1000)}
	for _, m := range want {
		sent = append(h2.AppendPrefix(sent, len(m)), m...)
	}
	for size := 1; size <= len(sent); size++ {
		a := assembler{most: 1000}
		var got [][]byte
		for at := 0; at < len(sent); at += size {
			for p := sent[at:min(at+size, len(sent))]; len(p) > 0; {
				message, rest, done, err := a.take(p)
				if err != nil {
					t.Fatal(err)
				}
				if p = rest; done {
					got = append(got, bytes.Clone(message))
				}
			}
		}
		if len(got) != len(want) || !bytes.Equal(bytes.Join(got, nil), bytes.Join(want, nil)) || a.partial() {
			t.Fatalf("by %d bytes: got %q", size, got)
		}
	}
	a := assembler{most: 1000}
	if _, _, _, err := a.take(h2.AppendPrefix(nil, 1001)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("too long: %v", err)
	}
	a = assembler{most: 1000}
	if _, _, done, err := a.take(h2.AppendPrefix(nil, 1000)); done || err != nil || cap(a.message) != 0 {
		t.Errorf("announced: done %v, %v, %d bytes are kept", done, err, cap(a.message))
	}
}

// FuzzAssembler reads a request's body in two cuts.
func FuzzAssembler(f *testing.F) {
	f.Add(append(h2.AppendPrefix(nil, 3), "one"...), 4, "")
	f.Add(append([]byte{1, 0, 0, 0, 3}, "one"...), 2, "gzip")
	f.Fuzz(func(t *testing.T, p []byte, cut int, compressor string) {
		if compressor != "" {
			compressor = "gzip"
		}
		const most = 4096
		a := assembler{most: most, compressor: compressor, turns: admission.NewTurns(), holder: room(anyRoom)}
		cut = min(max(cut, 0), len(p))
		for _, part := range [][]byte{p[:cut], p[cut:]} {
			for len(part) > 0 {
				message, rest, _, err := a.take(part)
				if err != nil {
					return
				}
				if len(message) > most || len(rest) >= len(part) {
					t.Fatalf("a message of %d bytes, and %d of %d bytes are left", len(message), len(rest), len(part))
				}
				part = rest
			}
		}
	})
}

func TestTimeoutOf(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"1n": 1, "20u": 20 * time.Microsecond, "5S": 5 * time.Second, "99999999H": 1<<63 - 1, "0m": 0,
	} {
		if got, err := timeoutOf(value); got != want || err != nil {
			t.Errorf("%s: got %v, %v", value, got, err)
		}
	}
	for _, value := range []string{"", "1", "S", "1s", "-1S", "123456789S", " 1S", "1.5S"} {
		if got, err := timeoutOf(value); err == nil {
			t.Errorf("%q: got %v", value, got)
		}
	}
}

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{"plain": "plain", "100%\n": "100%25%0A", "ä": "%C3%A4", "\xff": "%EF%BF%BD"} {
		if got := escape(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

// room is a holder.
type room func(bytes int) bool

func (r room) holdUnpacked(bytes int) bool { return r(bytes) }

// anyRoom is room for whatever is unpacked.
func anyRoom(int) bool { return true }

// Ensure that a compressed message is unpacked only as far as there is room for it, and counts as what it is afterwards.
func TestAssembler_unpack_room(t *testing.T) {
	const size, most = 1 << 20, 4 << 20
	packed, err := compress(admission.NewTurns(), encoding.GetCompressor("gzip"), mem.BufferSlice{mem.SliceBuffer(make([]byte, size))})
	if err != nil {
		t.Fatal(err)
	}
	for _, free := range []int{0, unpackerBytes, size, most} {
		held := 0
		a := assembler{most: most, compressor: "gzip", turns: admission.NewTurns(), holder: room(func(bytes int) bool {
			if bytes > free {
				return false
			}
			held = bytes
			return true
		})}
		message, _, _, err := a.take(packed)
		if free < most && (status.Code(err) != codes.ResourceExhausted || message != nil) {
			t.Errorf("room for %d bytes: %d were unpacked, and %v", free, len(message), err)
		}
		if free == most && (err != nil || len(message) != size || held != copies*size) {
			t.Errorf("a message of %d bytes counts as %d, and %v", len(message), held, err)
		}
	}
}

// Ensure that large messages are compressed, and the opposite, only when it is their turn, and piece by piece; small ones at
// once.
func TestAssembler_turns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := admission.NewTurns()
		pack := func(size int) []byte {
			packed, err := compress(turns, encoding.GetCompressor("gzip"), mem.BufferSlice{mem.SliceBuffer(make([]byte, size))})
			if err != nil {
				t.Error(err)
			}
			return packed
		}
		unpack := func(packed []byte) int {
			a := assembler{most: 4 << 20, compressor: "gzip", turns: turns, holder: room(anyRoom)}
			message, _, _, err := a.take(packed)
			if err != nil {
				t.Error(err)
			}
			return len(message)
		}
		small, large := pack(admission.LargeBytes-1), pack(3<<20)
		end := make(chan struct{})
		for range runtime.GOMAXPROCS(0) { // all turns, and one more
			go turns.Do(admission.LargeBytes, func() { <-end })
		}
		synctest.Wait()
		var done atomic.Int64
		for _, work := range []func() bool{
			func() bool { return len(pack(admission.LargeBytes)) > 0 }, func() bool { return unpack(large) == 3<<20 },
			func() bool { return len(pack(100)) > 0 }, func() bool { return unpack(small) == admission.LargeBytes-1 },
		} {
			go func() {
				if work() {
					done.Add(1)
				}
			}()
		}
		if synctest.Wait(); done.Load() != 2 {
			t.Errorf("%d messages were done without a turn, want 2", done.Load())
		}
		close(end)
		if synctest.Wait(); done.Load() != 4 {
			t.Errorf("%d messages were done in all", done.Load())
		}
	})
}
