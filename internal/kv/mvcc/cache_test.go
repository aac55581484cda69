package mvcc

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/kv"
)

func version(key string, mod kv.Revision, size int) *kv.KeyValue {
	return &kv.KeyValue{Key: []byte(key), Value: make([]byte, size), ModRevision: mod}
}

// A reader that looked before a write must not store the old version after it.
func TestCache_learn_afterWrite(t *testing.T) {
	c := newCache(1 << 20)
	c.put("k", hashKey([]byte("k")), version("k", 12, 1), kv.Rev{Main: 12})
	shard, _ := c.at(hashKey([]byte("k")))
	shard.evict(shard.slots["k"])
	c.learn([]byte("k"), version("k", 5, 1), kv.Rev{Main: 5}, 11)
	if _, _, found := c.get([]byte("k"), 20); found {
		t.Error("the cache took a version that was outdated at revision 12")
	}
	c.learn([]byte("k"), version("k", 12, 1), kv.Rev{Main: 12}, 12)
	if got, _, found := c.get([]byte("k"), 20); !found || got.ModRevision != 12 {
		t.Errorf("got %v, %v, want the version of 12", got, found)
	}
	if _, _, found := c.get([]byte("k"), 11); found {
		t.Error("the cache answers for a revision before its version")
	}
}

func TestCache_learn_absence(t *testing.T) {
	c := newCache(1 << 20)
	c.learn([]byte("k"), nil, kv.Rev{Main: 7}, 7)
	if got, _, found := c.get([]byte("k"), 7); !found || got != nil {
		t.Errorf("got %v, %v, want known absence", got, found)
	}
	c.put("k", hashKey([]byte("k")), version("k", 8, 1), kv.Rev{Main: 8})
	if got, _, found := c.get([]byte("k"), 9); !found || got == nil {
		t.Errorf("got %v, %v, want the version of 8", got, found)
	}
}

func TestCache_budget(t *testing.T) {
	const budget = 1 << 20
	c := newCache(budget)
	for i := range 20_000 {
		key := fmt.Sprint("key", i%7000)
		c.put(key, hashKey([]byte(key)), version(key, kv.Revision(i+2), i%3000), kv.Rev{Main: kv.Revision(i + 2)})
		if i%100 == 0 && c.sizeBytes() > budget {
			t.Fatalf("the cache has %d bytes of %d", c.sizeBytes(), budget)
		}
	}
	if c.sizeBytes() < budget/2 {
		t.Errorf("the cache has only %d bytes of %d", c.sizeBytes(), budget)
	}
	key := "key1"
	c.put(key, hashKey([]byte(key)), version(key, 30_000, budget), kv.Rev{Main: 30_000})
	if _, _, found := c.get([]byte(key), 40_000); found {
		t.Error("a value larger than its share is kept, or its old version")
	}
}

// Entries that are used again survive a scan of others.
func TestCache_clock(t *testing.T) {
	c := newCache(1 << 20)
	c.put("hot", hashKey([]byte("hot")), version("hot", 2, 100), kv.Rev{Main: 2})
	for i := range 50_000 {
		if _, _, found := c.get([]byte("hot"), kv.Revision(i+3)); !found {
			t.Fatalf("the hot key was evicted after %d others", i)
		}
		key := fmt.Sprint("cold", i)
		c.put(key, hashKey([]byte(key)), version(key, kv.Revision(i+3), 100), kv.Rev{Main: kv.Revision(i + 3)})
	}
}
