package witness

import (
	"bytes"

	"github.com/tidwall/btree"

	"github.com/quorate/quorate/internal/base/keyrange"
	"github.com/quorate/quorate/internal/consensus"
)

// Claims is what a set of commands touches. Nearly all of them touch single keys, which are looked up; the few ranges are
// gone through.
type Claims struct {
	keys     btree.Map[string, int]
	leases   btree.Map[int64, int]
	owners   map[consensus.MemberID]int
	ranges   []keyrange.Range
	barriers int
	size     int
}

// Len returns how many footprints were added and not removed.
func (c *Claims) Len() int { return c.size }

// Add notes one more footprint. It keeps no part of f.
func (c *Claims) Add(f *consensus.Footprint) {
	c.size++
	if f.Barrier {
		c.barriers++
	}
	for _, r := range f.Keys {
		if key, single := singleKey(r); single {
			n, _ := c.keys.Get(string(key))
			c.keys.Set(string(key), n+1)
			continue
		}
		c.ranges = append(c.ranges, keyrange.Range{Start: bytes.Clone(r.Start), End: bytes.Clone(r.End)})
	}
	for _, lease := range f.Leases {
		n, _ := c.leases.Get(lease)
		c.leases.Set(lease, n+1)
	}
	for _, owner := range f.Owners {
		if c.owners == nil {
			c.owners = map[consensus.MemberID]int{}
		}
		c.owners[owner]++
	}
}

// Remove takes one footprint out that was added.
func (c *Claims) Remove(f *consensus.Footprint) {
	c.size--
	if f.Barrier {
		c.barriers--
	}
	for _, r := range f.Keys {
		if key, single := singleKey(r); single {
			decrement(&c.keys, string(key))
			continue
		}
		c.removeRange(r)
	}
	for _, lease := range f.Leases {
		decrement(&c.leases, lease)
	}
	for _, owner := range f.Owners {
		if c.owners[owner]--; c.owners[owner] == 0 {
			delete(c.owners, owner)
		}
	}
}

// MeetsOwners reports whether any of the commands opens or ends sessions.
func (c *Claims) MeetsOwners() bool { return len(c.owners) > 0 }

// MeetsOwner reports whether any of the commands opens or ends sessions of a member or client.
func (c *Claims) MeetsOwner(owner consensus.MemberID) bool { return c.owners[owner] > 0 }

func (c *Claims) removeRange(r keyrange.Range) {
	for i := range c.ranges {
		if bytes.Equal(c.ranges[i].Start, r.Start) && bytes.Equal(c.ranges[i].End, r.End) {
			c.ranges[i] = c.ranges[len(c.ranges)-1]
			c.ranges = c.ranges[:len(c.ranges)-1]
			return
		}
	}
}

func decrement[K string | int64](m *btree.Map[K, int], key K) {
	if n, _ := m.Get(key); n > 1 {
		m.Set(key, n-1)
	} else {
		m.Delete(key)
	}
}

// Meets reports whether f conflicts with any of the footprints.
func (c *Claims) Meets(f *consensus.Footprint) bool {
	if c.size == 0 {
		return false
	}
	if c.barriers > 0 || f.Barrier {
		return true
	}
	for _, r := range f.Keys {
		if c.touches(r) {
			return true
		}
	}
	for _, lease := range f.Leases {
		if n, _ := c.leases.Get(lease); n > 0 {
			return true
		}
	}
	return false
}

func (c *Claims) touches(r keyrange.Range) bool {
	for _, other := range c.ranges {
		if r.Overlaps(other) {
			return true
		}
	}
	if key, single := singleKey(r); single {
		n, _ := c.keys.Get(string(key))
		return n > 0
	}
	found := false
	c.keys.Ascend(string(r.Start), func(key string, _ int) bool {
		found = r.Contains([]byte(key))
		return false // the first one at or after the beginning of the range decides
	})
	return found
}

// singleKey returns the key of a range that contains no other.
func singleKey(r keyrange.Range) ([]byte, bool) {
	if r.IsSingle() {
		return r.Start, true
	}
	return nil, false
}
