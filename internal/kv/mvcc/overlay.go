package mvcc

import (
	"bytes"

	"github.com/tidwall/btree"

	"github.com/quorate/quorate/internal/kv"
)

// overlay holds the versions that a Writer has not committed yet. It holds all of them, not only the newest of each key: a
// command may read at the revision of another command of the same batch, and must get the same result as if they were in two
// batches.
type overlay struct {
	byKey map[string]*pendingKey
	// touched has the keys in the order of their first change: the order in which the cache gets them.
	touched []*pendingKey
	// sorted has the first sortedLen of touched. Most batches never ask for a range and never sort.
	sorted    *btree.BTreeG[*pendingKey]
	sortedLen int
}

type pendingKey struct {
	key    []byte
	name   string // the key as a string, for the maps
	newest *pendingVersion
}

// pendingVersion is one change; older leads to the change of the same key before it.
type pendingVersion struct {
	rev       kv.Rev
	tombstone bool
	kv        kv.KeyValue
	older     *pendingVersion
}

// live returns the version as a key, nil for a tombstone.
func (v *pendingVersion) live() *kv.KeyValue {
	if v.tombstone {
		return nil
	}
	return &v.kv
}

// record returns the version as it is stored.
func (v *pendingVersion) record() record {
	return record{
		tombstone: v.tombstone, create: v.kv.CreateRevision, version: v.kv.Version, lease: v.kv.Lease, value: v.kv.Value,
	}
}

// position is where the version will be stored.
func (v *pendingVersion) position() position {
	r := v.record()
	return position{v.rev, recordLen(&r, v.rev.Main)}
}

func (v *pendingVersion) changeKind() byte {
	switch {
	case v.tombstone:
		return changeDelete
	case v.kv.Version == 1:
		return changeCreate
	}
	return changeUpdate
}

// at returns the newest version that is not after rev, nil if all are.
func (k *pendingKey) at(rev kv.Revision) *pendingVersion {
	v := k.newest
	for v != nil && v.rev.Main > rev {
		v = v.older
	}
	return v
}

func (o *overlay) init() {
	o.byKey = make(map[string]*pendingKey)
	o.sorted = btree.NewBTreeGOptions(func(a, b *pendingKey) bool { return bytes.Compare(a.key, b.key) < 0 },
		btree.Options{NoLocks: true})
}

func (o *overlay) add(v *pendingVersion) {
	k, found := o.byKey[string(v.kv.Key)]
	if !found {
		k = &pendingKey{key: v.kv.Key, name: string(v.kv.Key)}
		o.byKey[k.name] = k
		o.touched = append(o.touched, k)
	}
	v.older = k.newest
	k.newest = v
}

func (o *overlay) newest(key []byte) (*pendingVersion, bool) {
	if len(o.touched) == 0 {
		return nil, false
	}
	k, found := o.byKey[string(key)]
	if !found {
		return nil, false
	}
	return k.newest, true
}

func (o *overlay) at(key []byte, rev kv.Revision) *pendingVersion {
	k, found := o.byKey[string(key)]
	if !found {
		return nil
	}
	return k.at(rev)
}

// within returns the changed keys of a range in order.
func (o *overlay) within(key, end []byte) []*pendingKey {
	for _, k := range o.touched[o.sortedLen:] {
		o.sorted.Set(k)
	}
	o.sortedLen = len(o.touched)
	var found []*pendingKey
	o.sorted.Ascend(&pendingKey{key: key}, func(k *pendingKey) bool {
		if !inRange(k.key, key, end) {
			return false
		}
		found = append(found, k)
		return true
	})
	return found
}

// publish puts the newest versions into the cache and empties the overlay.
func (o *overlay) publish(to *cache) {
	for _, k := range o.touched {
		v := k.newest
		v.older = nil
		to.put(k.name, hashKey(k.key), v.live(), v.rev)
	}
	if o.sortedLen > 0 {
		o.sorted.Clear()
		o.sortedLen = 0
	}
	const keep = 1 << 14
	if len(o.touched) > keep {
		o.byKey, o.touched = make(map[string]*pendingKey), nil
		return
	}
	clear(o.byKey)
	clear(o.touched)
	o.touched = o.touched[:0]
}
