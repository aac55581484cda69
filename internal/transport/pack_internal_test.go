package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// sealed returns a plain frame with a body.
func sealed(body []byte) []byte {
	frame := append(beginFrame(nil, frameMessages), body...)
	sealFrame(frame)
	return frame
}

func packed(t testing.TB, p *packer, plain []byte) []byte {
	t.Helper()
	frame, err := p.pack(nil, plain)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

func newUnpackerForTesting() *unpacker { return &unpacker{budget: &packBudget{}} }

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

// Ensure that frames of any size and kind of contents come out as they went in, and that what recurs from frame to frame is
// sent once.
func TestPacker_pack(t *testing.T) {
	p, u := newPacker(), newUnpackerForTesting()
	defer u.close()
	for _, body := range [][]byte{
		nil, {1}, randomBytes(30), bytes.Repeat([]byte("pod"), 4000), randomBytes(packWindow - 1), randomBytes(packWindow + 1),
		bytes.Repeat([]byte{7}, maxPackedBytes-frameHeaderBytes), randomBytes(maxPackedBytes - frameHeaderBytes), randomBytes(30),
	} {
		plain := sealed(body)
		got, err := u.unpack(packed(t, p, plain))
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("a frame of %d bytes came out as %d: %v", len(plain), len(got), err)
		}
	}
	object := randomBytes(2000)
	first, again := len(packed(t, p, sealed(object))), len(packed(t, p, sealed(object)))
	if first < len(object) || again > 40 {
		t.Errorf("2,000 random bytes take %d, and %d when they come again", first, again)
	}
}

// Ensure that both ends take the memory that the budget counts for them, and no more.
func TestPacker_memory(t *testing.T) {
	alive := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	frame := sealed(append(randomBytes(512<<10), bytes.Repeat([]byte("pod"), 100_000)...))
	_ = packed(t, newPacker(), frame) // tables that are made once
	before := alive()
	p := newPacker()
	for range 4 {
		_ = packed(t, p, frame)
	}
	with := alive()
	if got := with - before; got > packerBytes {
		t.Errorf("a packer takes %d bytes, not %d", got, packerBytes)
	}
	runtime.KeepAlive(p)
	var frames [][]byte
	p = newPacker()
	for range 4 {
		frames = append(frames, packed(t, p, frame))
	}
	p, before = nil, alive()
	u := newUnpackerForTesting()
	for _, each := range frames {
		if _, err := u.unpack(each); err != nil {
			t.Fatal(err)
		}
	}
	if got := alive() - before; got > unpackerBytes {
		t.Errorf("an unpacker takes %d bytes, not %d", got, unpackerBytes)
	}
	u.close()
	runtime.KeepAlive(frames)
}

// Ensure that a frame which says something else than it has is refused, before memory is taken for what it says.
func TestUnpacker_unpack_refused(t *testing.T) {
	plain := sealed(bytes.Repeat([]byte("pod"), 1000))
	good := packed(t, newPacker(), plain)
	claim := func(length uint64) []byte {
		const at = frameHeaderBytes + 1
		_, n := binary.Uvarint(good[at:])
		return append(binary.AppendUvarint(bytes.Clone(good[:at]), length), good[at+n:]...)
	}
	wide := func() []byte {
		var out bytes.Buffer
		w, err := zstd.NewWriter(&out, zstd.WithWindowSize(2*packWindow), zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(plain[frameHeaderBytes:])
		_ = w.Flush()
		head := binary.AppendUvarint(bytes.Clone(good[:frameHeaderBytes+1]), uint64(len(plain)-frameHeaderBytes))
		return append(head, out.Bytes()...)
	}
	damaged := bytes.Clone(good)
	damaged[len(damaged)-1] ^= 1
	for _, tc := range []struct {
		name  string
		frame []byte
	}{
		{"no body", good[:frameHeaderBytes]},
		{"no length", good[:frameHeaderBytes+1]},
		{"a bomb", claim(maxPackedBytes + 1)},
		{"a bomb beyond all numbers", claim(1 << 63)},
		{"more than it has", claim(uint64(len(plain)))},
		{"less than it has", claim(10)},
		{"an end that is cut off", good[:len(good)-1]},
		{"bytes behind its end", append(bytes.Clone(good), 0)},
		{"a window that takes more memory", wide()},
		{"damage", damaged},
		{"another packed frame in it", packed(t, newPacker(), append([]byte{byte(framePacked)}, plain[1:]...))},
	} {
		u := newUnpackerForTesting()
		got, err := u.plain(tc.frame)
		kind := frameMessages
		if err == nil {
			kind, _, err = openFrame(got)
		}
		if err == nil && kind == frameMessages || err != nil && !errors.Is(err, ErrCorruptFrame) {
			t.Errorf("%s: got %d bytes and %v, want %v", tc.name, len(got), err, ErrCorruptFrame)
		}
		if cap(got) > maxPackedBytes+frameHeaderBytes {
			t.Errorf("%s: took %d bytes", tc.name, cap(got))
		}
		u.close()
	}
	if _, err := (*unpacker)(nil).plain(good); !errors.Is(err, ErrCorruptFrame) {
		t.Errorf("nobody asked for packed frames: got %v", err)
	}
}

// Ensure that frames are packed to a member that is far away, or always, and only if it takes them and there is memory.
func TestPacking_wanted(t *testing.T) {
	const near, far = packedTrip - 1, packedTrip
	for _, tc := range []struct {
		name  string
		when  PackWhen
		bytes int64
		can   byte
		trip  time.Duration
		want  bool
	}{
		{"near", PackAuto, packerBytes, canUnpack, near, false},
		{"far", PackAuto, packerBytes, canUnpack, far, true},
		{"how far is not known", PackAuto, packerBytes, canUnpack, 0, false},
		{"near, always", PackAlways, packerBytes, canUnpack, near, true},
		{"not known, always", PackAlways, packerBytes, canUnpack, 0, true},
		{"far, never", PackNever, packerBytes, canUnpack, far, false},
		{"a member without memory for it", PackAlways, packerBytes, 0, far, false},
		{"no memory", PackAlways, packerBytes - 1, canUnpack, far, false},
	} {
		var budget packBudget
		budget.open(tc.bytes)
		var trips Lowest
		if tc.trip > 0 {
			trips.Add(tc.trip, time.Now())
		}
		k := newPacking(&Packing{When: tc.when}, &budget, &trips, tc.can)
		if got := k.wanted(); got != tc.want {
			t.Errorf("%s: got %v", tc.name, got)
		}
		trips.Add(near, time.Now())
		if got := k.wanted(); got != tc.want {
			t.Errorf("%s: got %v once it is near", tc.name, got)
		}
		if left := budget.left.Load(); tc.want != (left == 0) {
			t.Errorf("%s: %d bytes are left", tc.name, left)
		}
		k.close()
		if left := budget.left.Load(); left != tc.bytes {
			t.Errorf("%s: %d bytes are left in the end, not %d", tc.name, left, tc.bytes)
		}
	}
}

// Ensure that a frame of more than the other side unpacks is sent as it is, and that the next one is packed.
func TestPacking_frame_large(t *testing.T) {
	var budget packBudget
	budget.give(packerBytes)
	k := newPacking(&Packing{When: PackAlways}, &budget, &Lowest{}, canUnpack)
	defer k.close()
	for _, tc := range []struct {
		bytes int
		want  frameKind
	}{{maxPackedBytes + 1, frameMessages}, {maxPackedBytes, framePacked}} {
		frame := sealed(make([]byte, tc.bytes-frameHeaderBytes))
		got, err := k.frame(&frame)
		if err != nil || frameKind((*got)[0]) != tc.want {
			t.Errorf("%d bytes: got a frame of kind %d, %v", tc.bytes, (*got)[0], err)
		}
	}
}

// Ensure that the hello of a stream has its bits and its token, and that one of a later build may have more.
func TestHello_can(t *testing.T) {
	h := hello{version: protocolVersion, kind: streamOrdered, to: 2, can: canUnpack, token: newToken()}
	frame := h.frame()
	for _, tc := range []struct {
		frame []byte
		want  error
	}{
		{frame, nil}, {append(bytes.Clone(frame), 1, 2, 3), nil},
		{bytes.Clone(frame[:len(frame)-1]), ErrHandshake}, {bytes.Clone(frame[:len(frame)-tokenBytes-1]), ErrHandshake},
	} {
		sealFrame(tc.frame)
		got, err := decodeHelloFrame(tc.frame)
		if !errors.Is(err, tc.want) || err == nil && (got.can != h.can || got.token != h.token || got.to != 2) {
			t.Errorf("%d bytes: got %+v, %v", len(tc.frame), got, err)
		}
	}
}

// FuzzUnpacker_unpack ensures that nothing makes an unpacker panic, or take more memory than it may.
func FuzzUnpacker_unpack(f *testing.F) {
	p := newPacker()
	f.Add(packed(f, p, sealed([]byte("a"))), packed(f, p, sealed(bytes.Repeat([]byte("pod"), 100))))
	f.Add([]byte{}, []byte{byte(framePacked)})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		u := newUnpackerForTesting()
		defer u.close()
		for _, frame := range [][]byte{first, second} {
			got, err := u.unpack(frame)
			if err != nil {
				return
			}
			if len(got) > maxPackedBytes+frameHeaderBytes {
				t.Fatalf("%d bytes", len(got))
			}
		}
	})
}
