package mvcc_test

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/quorate/quorate/internal/kv"
)

// full is an account without room. It notes what was asked for, and how much memory had been taken by then.
type full struct {
	asked     int
	allocated uint64
}

var errFull = errors.New("no room")

func (f *full) Take(n int) error {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.asked, f.allocated = f.asked+n, m.TotalAlloc
	return errFull
}

func (f *full) Release() {}

// Ensure that who waits for room for a large value does not hold that value meanwhile.
func TestStore_RangeWithin_takesBeforeItReads(t *testing.T) {
	const size = 8 << 20
	for _, o := range openers {
		s, eng := openStore(t, o, vfs.NewMem(), -1) // without a cache, in which it would be shared
		put(t, s, "large", string(bytes.Repeat([]byte{1}, size)), 0)
		for name, op := range map[string]kv.RangeOp{
			"now": {Key: []byte("large")}, "then": {Key: []byte("large"), Revision: 2},
		} {
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			var account full
			if _, _, err := s.RangeWithin(&op, &account); !errors.Is(err, errFull) || account.asked < size {
				t.Errorf("%s, %s: %v after %d bytes were asked for", o.name, name, err, account.asked)
			}
			if read := account.allocated - before.TotalAlloc; o.name == "mem" && read >= size {
				t.Errorf("%s, %s: %d bytes were allocated before there was room", o.name, name, read)
			}
			got, _, err := s.RangeWithin(&op, unlimited{})
			if err != nil || len(got.KVs) != 1 || len(got.KVs[0].Value) != size {
				t.Errorf("%s, %s: with room %d pairs, %v", o.name, name, len(got.KVs), err)
			}
		}
		account := full{}
		if got, _, err := s.RangeWithin(&kv.RangeOp{Key: []byte("large"), CountOnly: true}, &account); err != nil || got.Count != 1 {
			t.Errorf("%s: counted %d, %v", o.name, got.Count, err)
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}
}
