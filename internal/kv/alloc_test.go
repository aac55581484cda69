//go:build !race

package kv_test

import (
	"testing"

	"github.com/quorate/quorate/internal/kv"
)

// Ensure that a put is decoded without allocations, and encoded into one. The race detector allocates more.
func TestDecoder_Decode_allocations(t *testing.T) {
	var d kv.Decoder
	full := kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: []byte("v"), Lease: 7, PrevKV: true}}
	encoded := full.Append(nil)
	if n := testing.AllocsPerRun(100, func() { _, _ = d.Decode(encoded) }); n != 0 {
		t.Errorf("a put is decoded with %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = kv.Readable(encoded) }); n != 0 {
		t.Errorf("a leader reads a put with %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = full.Append(nil) }); n != 1 {
		t.Errorf("a put is encoded with %v allocations, want one", n)
	}
}
