package validate

import (
	"bytes"

	"github.com/tidwall/btree"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/kv"
)

// A transaction must not put one key twice, nor put a key that it also deletes, because the order of its ops would
// then decide what a watcher sees. The two branches of one nested transaction may write the same key: only one runs.
//
// Two things are kept as etcd has them, because clients may rely on them: a delete that is nested is not held against
// puts of transactions nested before it, and a delete up to the end of the key space (range_end "\x00") is held
// against nothing at all.

// Overlaps checks one list of ops and everything nested in it.
func Overlaps(ops []kv.Op) error {
	if len(ops) < 2 && (len(ops) == 0 || ops[0].Txn == nil) {
		return nil
	}
	if len(ops) <= smallList {
		if checked, err := checkSmallList(ops); checked {
			return err
		}
	}
	_, _, err := writesOf(ops)
	return err
}

// smallList is the length up to which comparing every pair is cheaper than building sets.
const smallList = 8

// checkSmallList compares every pair of ops; it does not know nested transactions and says so.
func checkSmallList(ops []kv.Op) (checked bool, err error) {
	for i := range ops {
		if ops[i].Txn != nil {
			return false, nil
		}
	}
	for i := range ops {
		if ops[i].Put == nil {
			continue
		}
		key := ops[i].Put.Key
		for j := range ops {
			switch {
			case j > i && ops[j].Put != nil && bytes.Equal(key, ops[j].Put.Key):
				return true, rpctypes.ErrGRPCDuplicateKey
			case ops[j].Delete != nil && covers(ops[j].Delete, key):
				return true, rpctypes.ErrGRPCDuplicateKey
			}
		}
	}
	return true, nil
}

// covers tells whether a delete is held against a put of key.
func covers(op *kv.DeleteOp, key []byte) bool {
	if len(op.End) == 0 {
		return bytes.Equal(op.Key, key)
	}
	return bytes.Compare(op.Key, key) <= 0 && bytes.Compare(key, op.End) < 0
}

// writesOf gives the keys that a list puts and the spans that it deletes, or the error if they collide.
func writesOf(ops []kv.Op) (map[string]struct{}, *spanSet, error) {
	deletes := newSpanSet()
	for i := range ops {
		if op := ops[i].Delete; op != nil {
			deletes.add(string(op.Key), string(op.End))
		}
	}
	puts := make(map[string]struct{})
	for i := range ops {
		if ops[i].Txn == nil {
			continue
		}
		nested, err := writesOfNested(ops[i].Txn, puts, &deletes)
		if err != nil {
			return nil, nil, err
		}
		// The smaller set always goes into the larger, which keeps deep nesting affordable.
		if len(nested) > len(puts) {
			puts, nested = nested, puts
		}
		for key := range nested {
			puts[key] = struct{}{}
		}
	}
	for i := range ops {
		if ops[i].Put == nil {
			continue
		}
		key := string(ops[i].Put.Key)
		if _, twice := puts[key]; twice || deletes.has(key) {
			return nil, nil, rpctypes.ErrGRPCDuplicateKey
		}
		puts[key] = struct{}{}
	}
	return puts, deletes, nil
}

// writesOfNested checks both branches of a nested transaction against what its surroundings write already, adds its
// deletes to theirs and gives its puts.
func writesOfNested(op *kv.TxnOp, puts map[string]struct{}, deletes **spanSet) (map[string]struct{}, error) {
	var union map[string]struct{}
	var spans [2]*spanSet
	for branch, list := range [2][]kv.Op{op.Then, op.Else} {
		own, deleted, err := writesOf(list)
		if err != nil {
			return nil, err
		}
		for key := range own {
			if _, twice := puts[key]; twice || (*deletes).has(key) {
				return nil, rpctypes.ErrGRPCDuplicateKey
			}
		}
		spans[branch] = deleted
		if len(union) < len(own) {
			union, own = own, union
		}
		for key := range own {
			union[key] = struct{}{}
		}
	}
	for _, more := range spans {
		*deletes = mergeSpans(*deletes, more)
	}
	return union, nil
}

// spanSet is a set of keys given as spans [begin, end), kept disjoint and sorted.
type spanSet struct{ spans *btree.BTreeG[span] }

type span struct{ begin, end string }

func newSpanSet() *spanSet {
	less := func(a, b span) bool { return a.begin < b.begin }
	return &spanSet{spans: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})}
}

// add puts what a delete of [begin, end) is held against into the set. An empty end means begin alone; one that is not
// behind begin, as "\x00" hardly ever is, means nothing.
func (s *spanSet) add(begin, end string) {
	if end == "" {
		end = begin + "\x00"
	}
	if begin < end {
		s.insert(span{begin, end})
	}
}

func (s *spanSet) insert(n span) {
	var touching []span
	s.spans.Descend(span{begin: n.end}, func(o span) bool {
		if o.end < n.begin {
			return false
		}
		touching = append(touching, o)
		return true
	})
	for _, o := range touching {
		n = span{min(n.begin, o.begin), max(n.end, o.end)}
		s.spans.Delete(o)
	}
	s.spans.Set(n)
}

// has tells whether key is in the set.
func (s *spanSet) has(key string) bool {
	found := false
	s.spans.Descend(span{begin: key}, func(o span) bool {
		found = key < o.end
		return false
	})
	return found
}

// mergeSpans joins two sets, the smaller into the larger. Both are used up.
func mergeSpans(a, b *spanSet) *spanSet {
	if a.spans.Len() < b.spans.Len() {
		a, b = b, a
	}
	b.spans.Scan(func(n span) bool {
		a.insert(n)
		return true
	})
	return a
}
