package engine_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// Ensure that the first and last keys of tables are counted, after a restart too, and are gone with their tables.
func TestStats_BoundBytes(t *testing.T) {
	const keyLen = 100 << 10
	fs := filestest.NewCrashableMem()
	open := func() engine.Engine {
		eng, err := engine.Open(engine.Options{FS: fs, Dir: "store"})
		if err != nil {
			t.Fatal(err)
		}
		return eng
	}
	eng := open()
	for i := range uint32(4) {
		batch := eng.NewBatch()
		batch.Set(binary.BigEndian.AppendUint32(bytes.Repeat([]byte("k"), keyLen), i), []byte("v"))
		if err := batch.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := eng.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, least, most int64) {
		t.Helper()
		if got := eng.Stats().BoundBytes; got < least*keyLen || got > most*(keyLen+1000) {
			t.Errorf("%s: %d bytes of keys, want those of %d to %d", what, got, least, most)
		}
		if allocs := testing.AllocsPerRun(10, func() { _ = eng.BoundBytes() }); allocs > 0 {
			t.Errorf("%s: %v allocations to ask again while no table comes or goes", what, allocs)
		}
	}
	want("four tables of one key", 8, 10)
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	eng = open()
	want("after a restart", 8, 10)
	if err := eng.Defragment(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("one table", 1, 4)
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
}
