package mvcc

import (
	"sync"

	"github.com/quorate/quorate/internal/kv"
)

// cache holds current versions of keys, and the knowledge that a key is absent, within a budget of bytes.
//
// The danger is a reader that looked up an old version, paused, and stores it after the writer changed the key. So each shard
// stamps the hash of every written key with the revision of the write, and takes a reader's entry only if no write later than
// the reader's revision has its stamp. Invariant: an entry is the newest version of its key among all that the writer has put
// into the cache, hence the version at every revision from entry.since to the published one.
//
// Eviction is CLOCK: a hand goes round the slots and evicts the first that was not used since its last visit. The hash is
// fixed, so that a simulation repeats exactly.
type cache struct {
	shards    [cacheShards]cacheShard
	maxEntry  int // larger ones are not kept
	hits      paddedCounter
	misses    paddedCounter
	perShard  int
	isEnabled bool
}

const (
	cacheShards   = 16
	cacheStamps   = 256
	entryOverhead = 160 // struct, map cell, slot and allocator rounding
)

type cacheShard struct {
	mu     sync.Mutex
	slots  map[string]int32
	ring   []*cacheEntry // nil: free
	free   []int32
	hand   int32
	bytes  int
	stamps [cacheStamps]kv.Revision
	_      [64]byte // keep neighbours' locks out of one cache line
}

// cacheEntry is immutable but for used, which its shard's lock guards.
type cacheEntry struct {
	key   string
	kv    *kv.KeyValue // nil: the key is absent
	since kv.Rev       // the entry is valid from this change on, which wrote kv if there is one
	size  int
	used  bool
}

func newCache(budgetBytes int) *cache {
	c := &cache{perShard: budgetBytes / cacheShards}
	c.maxEntry = c.perShard / 8
	c.isEnabled = budgetBytes > 0
	for i := range c.shards {
		c.shards[i].slots = make(map[string]int32)
	}
	return c
}

// hashKey is FNV-1a with a final mix: the low bits choose the shard, others the stamp.
func hashKey(key []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range key {
		h = (h ^ uint64(b)) * 1099511628211
	}
	h ^= h >> 32
	return h * 0x9e3779b97f4a7c15
}

func (c *cache) at(hash uint64) (*cacheShard, int) {
	return &c.shards[hash>>60%cacheShards], int(hash >> 40 % cacheStamps)
}

// get returns the entry of key if it is valid at rev, and the change from which on it is valid.
func (c *cache) get(key []byte, rev kv.Revision) (version *kv.KeyValue, since kv.Rev, found bool) {
	if !c.isEnabled {
		return nil, kv.Rev{}, false
	}
	shard, _ := c.at(hashKey(key))
	shard.mu.Lock()
	i, found := shard.slots[string(key)]
	if !found {
		shard.mu.Unlock()
		c.misses.add(1)
		return nil, kv.Rev{}, false
	}
	e := shard.ring[i]
	if e.since.Main > rev {
		shard.mu.Unlock()
		c.misses.add(1)
		return nil, kv.Rev{}, false
	}
	e.used = true
	shard.mu.Unlock()
	c.hits.add(1)
	return e.kv, e.since, true
}

// put is called by the writer: version is the newest of key, or nil if rev deleted it.
func (c *cache) put(key string, hash uint64, version *kv.KeyValue, rev kv.Rev) {
	if !c.isEnabled {
		return
	}
	shard, stamp := c.at(hash)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	shard.stamps[stamp] = max(shard.stamps[stamp], rev.Main)
	c.store(shard, key, version, rev)
}

// learn is called by a reader: version was the newest of key at revision seen, which was complete when the reader looked.
func (c *cache) learn(key []byte, version *kv.KeyValue, since kv.Rev, seen kv.Revision) {
	if !c.isEnabled {
		return
	}
	shard, stamp := c.at(hashKey(key))
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.stamps[stamp] > seen {
		return
	}
	if _, found := shard.slots[string(key)]; found {
		return // the entry is the newest already
	}
	c.store(shard, string(key), version, since)
}

func (c *cache) store(shard *cacheShard, key string, version *kv.KeyValue, since kv.Rev) {
	size := entryOverhead + len(key)
	if version != nil {
		size += len(version.Key) + len(version.Value)
	}
	i, found := shard.slots[key]
	if size > c.maxEntry {
		if found {
			shard.evict(i)
		}
		return
	}
	e := &cacheEntry{key: key, kv: version, since: since, size: size, used: found}
	if found {
		e.key = shard.ring[i].key
		shard.bytes += size - shard.ring[i].size
		shard.ring[i] = e
	} else {
		shard.insert(e)
	}
	for shard.bytes > c.perShard {
		shard.sweep()
	}
}

func (s *cacheShard) insert(e *cacheEntry) {
	var i int32
	if n := len(s.free); n > 0 {
		i = s.free[n-1]
		s.free = s.free[:n-1]
		s.ring[i] = e
	} else {
		i = int32(len(s.ring))
		s.ring = append(s.ring, e)
	}
	s.slots[e.key] = i
	s.bytes += e.size
}

func (s *cacheShard) evict(i int32) {
	e := s.ring[i]
	s.bytes -= e.size
	delete(s.slots, e.key)
	s.ring[i] = nil
	s.free = append(s.free, i)
}

// sweep moves the hand until it has evicted one entry.
func (s *cacheShard) sweep() {
	for {
		if int(s.hand) >= len(s.ring) {
			s.hand = 0
		}
		i := s.hand
		s.hand++
		e := s.ring[i]
		switch {
		case e == nil:
		case e.used:
			e.used = false
		default:
			s.evict(i)
			return
		}
	}
}

// sizeBytes is the size of all entries.
func (c *cache) sizeBytes() int {
	total := 0
	for i := range c.shards {
		c.shards[i].mu.Lock()
		total += c.shards[i].bytes
		c.shards[i].mu.Unlock()
	}
	return total
}
