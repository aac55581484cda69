package login

import (
	"sync"
	"time"

	"github.com/quorate/quorate/internal/base/linked"
)

// maxUses bounds the tokens whose last use is remembered: 8 MiB, at useBytes each. Options.UseBytes may be less.
const (
	maxUses  = 64 << 10
	useBytes = 128
)

// tokenID tells a simple token from all others.
type tokenID [16]byte

// uses remembers when tokens were last used at this member. A token that it has forgotten counts as never used.
type uses struct {
	ttl  time.Duration
	most int

	mu    sync.Mutex
	last  map[tokenID]*use
	order linked.List[use] // by last use, oldest first
}

type use struct {
	id    tokenID
	at    time.Time
	place linked.Place[use]
}

// newUses returns uses that take so many bytes, at most those of maxUses, which zero is.
func newUses(ttl time.Duration, bytes int64) *uses {
	most := maxUses
	if bytes > 0 {
		most = int(min(maxUses, max(1, bytes/useBytes)))
	}
	return &uses{ttl: ttl, most: most, last: map[tokenID]*use{}}
}

// use reports whether a token may be used now, and notes that it was. The clocks of members differ: a token from the future is
// good, but not if it is further away than the TTL.
func (u *uses) use(id tokenID, issued, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for first := u.order.First(); first != nil && now.Sub(first.at) > u.ttl; first = u.order.First() {
		u.forget(first)
	}
	known := u.last[id]
	if age := now.Sub(issued); known == nil && (age > u.ttl || age < -u.ttl) {
		return false
	}
	if known == nil {
		if len(u.last) >= u.most {
			u.forget(u.order.First())
		}
		known = &use{id: id}
		u.last[id] = known
	}
	known.at = now
	known.place.Remove()
	u.order.PushBack(&known.place, known)
	return true
}

func (u *uses) forget(one *use) {
	one.place.Remove()
	delete(u.last, one.id)
}

func (u *uses) len() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.last)
}
