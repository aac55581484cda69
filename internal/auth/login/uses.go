package login

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/linked"
)

// maxUseBytes bounds what is remembered of tokens: useBytes and the text of each. Options.UseBytes may be less.
const (
	maxUseBytes = 8 << 20
	useBytes    = 184
)

// usesPerTTL bounds how often the use of a token is noted that is used all the time: each TTL divided by it.
const usesPerTTL = 100

// tokenID tells a simple token from all others.
type tokenID [16]byte

// uses remembers the tokens that were used at this member, and when they were used last. A token that it has forgotten
// counts as never used. All that it remembers were signed with one secret, so that the signature of a token is checked at its
// first use only.
type uses struct {
	ttl   time.Duration
	most  int64     // bytes
	begun time.Time // with its monotonic reading, so that the machine's clock may be set

	mu     sync.Mutex
	secret []byte
	last   map[string]*use
	bytes  int64            // of all
	order  linked.List[use] // by last use, oldest first
}

type use struct {
	token string
	by    auth.Credentials
	at    atomic.Int64 // nanoseconds after uses.begun
	gone  atomic.Bool  // it is not remembered any more
	place linked.Place[use]
}

// size is what a use takes. The name of the user is part of the text of the token, and stands beside it once more.
func (u *use) size() int64 { return int64(useBytes + len(u.token) + len(u.by.User)) }

// newUses returns uses that take so many bytes, at most maxUseBytes, which zero is.
func newUses(ttl time.Duration, most int64, now time.Time) *uses {
	if most <= 0 || most > maxUseBytes {
		most = maxUseBytes
	}
	return &uses{ttl: ttl, most: most, begun: now, last: map[string]*use{}}
}

// expired reports whether the TTL has passed since a use.
func (u *uses) expired(one *use, now time.Time) bool {
	return now.Sub(u.begun)-time.Duration(one.at.Load()) > u.ttl
}

// find returns the use of a token if it is remembered, else nil.
func (u *uses) find(secret []byte, token string, now time.Time) *use {
	u.mu.Lock()
	defer u.mu.Unlock()
	for oldest := u.order.First(); oldest != nil && u.expired(oldest, now); oldest = u.order.First() {
		u.forget(oldest)
	}
	if !bytes.Equal(u.secret, secret) {
		return nil
	}
	return u.last[token]
}

// again notes that a token that was found was used now, unless that was noted a moment ago. It reports false if the token has
// expired or was forgotten meanwhile.
func (u *uses) again(one *use, now time.Time) bool {
	if one.gone.Load() || u.expired(one, now) {
		return false
	}
	if now.Sub(u.begun)-time.Duration(one.at.Load()) < u.ttl/usesPerTTL {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if one.gone.Load() {
		return false
	}
	u.note(one, now)
	return true
}

// first reports whether a token that is signed and not remembered may be used now, and remembers it. The clocks of members
// differ: a token from the future is good, but not if it is further away than the TTL.
func (u *uses) first(secret []byte, token string, by auth.Credentials, issued, now time.Time) bool {
	if age := now.Sub(issued); age > u.ttl || age < -u.ttl {
		return false
	}
	one := &use{token: strings.Clone(token), by: by}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !bytes.Equal(u.secret, secret) {
		for u.order.First() != nil {
			u.forget(u.order.First())
		}
		u.secret = secret
	}
	if before := u.last[token]; before != nil { // a call at the same time was faster
		u.forget(before)
	}
	for u.bytes+one.size() > u.most && u.order.First() != nil {
		u.forget(u.order.First())
	}
	u.last[one.token] = one
	u.bytes += one.size()
	u.note(one, now)
	return true
}

// note makes a use the last one.
func (u *uses) note(one *use, now time.Time) {
	one.at.Store(int64(now.Sub(u.begun)))
	one.place.Remove()
	u.order.PushBack(&one.place, one)
}

func (u *uses) forget(one *use) {
	one.gone.Store(true)
	one.place.Remove()
	delete(u.last, one.token)
	u.bytes -= one.size()
}

func (u *uses) len() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.last)
}
