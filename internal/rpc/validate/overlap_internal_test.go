package validate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/kv"
)

func put(key string) kv.Op { return kv.Op{Put: &kv.PutOp{Key: []byte(key)}} }
func remove(key, end string) kv.Op {
	return kv.Op{Delete: &kv.DeleteOp{Key: []byte(key), End: []byte(end)}}
}
func nest(then, otherwise []kv.Op) kv.Op {
	return kv.Op{Txn: &kv.TxnOp{Then: then, Else: otherwise}}
}

func TestOverlaps(t *testing.T) {
	ops := func(all ...kv.Op) []kv.Op { return all }
	for _, row := range []struct {
		name    string
		ops     []kv.Op
		overlap bool
	}{
		{"two keys", ops(put("a"), put("b")), false},
		{"one key twice", ops(put("a"), put("b"), put("a")), true},
		{"a put and a deletion of its key", ops(remove("a", ""), put("a")), true},
		{"a put within a deleted range", ops(put("b"), remove("a", "c")), true},
		{"a put at the end of a deleted range", ops(put("c"), remove("a", "c")), false},
		{"a deletion up to the end of the key space, which etcd holds against nothing", ops(put("b"), remove("a", "\x00")), false},
		{"two deletions", ops(remove("a", "c"), remove("b", "d")), false},
		{"both branches of one transaction", ops(nest(ops(put("a")), ops(put("a")))), false},
		{"two nested transactions", ops(nest(ops(put("a")), nil), nest(nil, ops(put("a")))), true},
		{"a nested put and one around it", ops(nest(ops(nest(ops(put("a")), nil)), nil), put("a")), true},
		{"a nested deletion and a put around it", ops(nest(ops(remove("a", "c")), nil), put("b")), true},
		{"a deletion around a nested put", ops(remove("a", "c"), nest(ops(put("b")), nil)), true},
		{"a nested deletion after a nested put, which etcd lets pass", ops(nest(ops(put("b")), nil), nest(ops(remove("a", "c")), nil)), false},
		{"a nested deletion before a nested put", ops(nest(ops(remove("a", "c")), nil), nest(ops(put("b")), nil)), true},
	} {
		if err := Overlaps(row.ops); (err != nil) != row.overlap || row.overlap && err != rpctypes.ErrGRPCDuplicateKey {
			t.Errorf("%s: got %v", row.name, err)
		}
	}
}

// Ensure that a short list, whose operations are compared pair by pair, is judged as a long one.
func TestOverlaps_shortAsLong(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, 0))
	key := func() string { return fmt.Sprintf("%c", 'a'+random.IntN(6)) }
	overlaps := 0
	for step := range 3_000 {
		var ops []kv.Op
		for range 2 + random.IntN(smallList-1) {
			switch random.IntN(3) {
			case 0:
				ops = append(ops, put(key()))
			case 1:
				ops = append(ops, remove(key(), ""))
			default:
				ops = append(ops, remove(key(), key()))
			}
		}
		checked, short := checkSmallList(ops)
		_, _, long := writesOf(ops)
		if !checked || short != long {
			t.Fatalf("seed %d, step %d: short list %v, long list %v", seed, step, short, long)
		}
		if long != nil {
			overlaps++
		}
	}
	if overlaps == 0 || overlaps == 3_000 {
		t.Errorf("%d of 3,000 lists overlap: they show nothing", overlaps)
	}
}
