package transport

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"golang.org/x/net/http2"
)

// Ensure that the bytes of DATA frames are counted, and no others, however reads cut them.
func TestDataMeter(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	var sent bytes.Buffer
	sent.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&sent, nil)
	want := 0
	for i := range 300 {
		size, id := rng.IntN(3)*rng.IntN(20_000), uint32(2*i+1)
		var err error
		switch rng.IntN(4) {
		case 0:
			err = framer.WriteData(id, false, make([]byte, size))
			want += size
		case 1:
			err = framer.WriteDataPadded(id, true, make([]byte, size), make([]byte, 7))
			want += size + 8
		case 2:
			err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: make([]byte, size), EndHeaders: true})
		case 3:
			err = framer.WritePing(false, [8]byte{1, 2, 3})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var m dataMeter
	got := 0
	for left := sent.Bytes(); len(left) > 0; {
		n := min(len(left), 1+rng.IntN(1<<rng.IntN(16)))
		got += m.count(left[:n])
		left = left[n:]
	}
	if got != want || m.left != 0 || m.had != 0 {
		t.Errorf("counted %d bytes of data, want %d; %d and %d are left", got, want, m.left, m.had)
	}
}
