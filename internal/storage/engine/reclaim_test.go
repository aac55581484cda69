package engine_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// A deleted row leaves the disk without further writes, and without a rest if a caller is in a hurry; after a start, too,
// which knows how much there is on the disk.
func TestEngine_Reclaim(t *testing.T) {
	for _, tc := range []struct{ hurried, restarted bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		fs := filestest.NewMem()
		e := openOnly(t, "pebble", fs, nil)
		const rows = 4000
		r := rand.New(rand.NewPCG(1, 1))
		value := make([]byte, 4096)
		write := func(do func(b engine.Batch, i int)) {
			b := e.NewBatch()
			for i := range rows {
				do(b, i)
			}
			if err := errors.Join(b.Commit(), b.Close()); err != nil {
				t.Fatal(err)
			}
		}
		write(func(b engine.Batch, i int) {
			for j := range value {
				value[j] = byte(r.Uint32())
			}
			b.Set(versioned([]byte{'k', byte(i), byte(i >> 8)}, 1), value)
		})
		if err := e.Defragment(t.Context()); err != nil { // all of it is at the bottom
			t.Fatal(err)
		}
		write(func(b engine.Batch, i int) {
			if i%100 != 0 {
				b.SingleDelete(versioned([]byte{'k', byte(i), byte(i >> 8)}, 1))
			}
		})
		if tc.restarted {
			if err := errors.Join(e.Flush(), e.Close()); err != nil {
				t.Fatal(err)
			}
			e = openOnly(t, "pebble", fs, nil)
		}
		if got := e.Stats().DiskBytes; got < rows*4096 || got > 10*rows*4096 { // files that were replaced may still be there
			t.Errorf("%+v: %d bytes on disk before, want all %d", tc, got, rows*4096)
		}
		if err := e.Reclaim(t.Context(), tc.hurried); err != nil {
			t.Fatal(err)
		}
		most := uint64(rows / 4 * 4096)
		for range 1 << 20 { // old files are removed in the background
			if e.Stats().DiskBytes <= most {
				break
			}
			runtime.Gosched()
		}
		if got := e.Stats().DiskBytes; got > most {
			t.Errorf("%+v: %d bytes on disk, want at most %d", tc, got, most)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
