package auth

import (
	"math"

	"github.com/quorate/quorate/internal/base/keyrange"
)

// AnyRevision stands for the revision of a user that is always authenticated anew, by a certificate, or whose revision does
// not count.
const AnyRevision = math.MaxUint64

// Credentials say in whose name a request comes. The zero value names no user.
type Credentials struct {
	User     string
	Revision uint64 // of the State by which the user was authenticated
	// Member says that no client asked: the member does, of itself.
	Member bool
}

// ByMember is in whose name a member proposes what clients propose, too. While authentication is disabled that is nobody's: no
// name is checked then.
func (s *State) ByMember() Credentials { return Credentials{Member: s.enabled} }

// IsZero reports whether the Credentials name no user.
func (c *Credentials) IsZero() bool { return *c == Credentials{} }

// Check is the checks of one request. It is not safe for use by several goroutines.
type Check struct {
	state *State
	user  *User // nil: all is permitted
	root  bool  // the user has the role root
	err   error // nothing is permitted
	// lookups in roles, so far, of ranges that no role permits alone.
	lookups int
}

// Check begins the checks of a request.
func (s *State) Check(by Credentials) Check {
	c := Check{state: s}
	if !s.enabled || by.Member {
		return c
	}
	if by.User == "" || by.Revision == 0 {
		c.err = ErrUserEmpty
		return c
	}
	switch c.user = s.users[by.User]; {
	case c.user == nil:
		c.err = ErrPermissionDenied
	case by.Revision < c.user.Since:
		c.root, c.err = c.user.has(RootRole), ErrOldRevision
	default:
		c.root = c.user.has(RootRole)
	}
	return c
}

// User fails if no user was authenticated, or one that is not the State's.
func (c *Check) User() error { return c.err }

// Free reports that everything is permitted.
func (c *Check) Free() bool { return c.err == nil && (c.user == nil || c.root) }

// Lookups is how often roles were asked for ranges that no role permits alone.
func (c *Check) Lookups() int { return c.lookups }

// Root permits only those who have the role root.
func (c *Check) Root() error {
	if c.err != nil || c.Free() {
		return c.err
	}
	return ErrPermissionDenied
}

// Read permits to read the keys of an etcd pair.
func (c *Check) Read(key, end []byte) error { return c.permit(Read, key, end) }

// Write permits to write the keys of an etcd pair.
func (c *Check) Write(key, end []byte) error { return c.permit(Write, key, end) }

// permit does not permit an empty range beyond what it permits for the key: a caller that asks for one learns whether that is
// an error, and no caller needs it.
func (c *Check) permit(access Access, key, end []byte) error {
	if c.err != nil || c.Free() {
		return c.err
	}
	r := keyrange.From(key, end)
	if r.IsEmpty() {
		r = keyrange.Single(key)
	}
	if !c.covers(access, r) {
		return ErrPermissionDenied
	}
	return nil
}

// covers asks each role alone first. All of them together can permit more only if one of them permits the first key.
func (c *Check) covers(access Access, r keyrange.Range) bool {
	first := false
	for _, name := range c.user.Roles {
		role, ok := c.state.roles[name]
		if !ok {
			continue
		}
		set := role.set(access)
		if set.Covers(r) {
			return true
		}
		first = first || set.Contains(r.Start)
	}
	return first && len(c.user.Roles) > 1 && c.together(access, r)
}

// MaxLookups is how often roles are asked, in one request, for ranges that only several of them permit together. More is
// refused: each lookup is a binary search, and every member asks for each write.
const MaxLookups = 20_000

// together goes from the beginning of the range to its end, each time as far as any role permits without a gap.
func (c *Check) together(access Access, r keyrange.Range) bool {
	for at := r.Start; ; {
		next := keyrange.Range{}
		found := false
		for _, name := range c.user.Roles {
			if c.lookups++; c.lookups > MaxLookups {
				return false
			}
			role, ok := c.state.roles[name]
			if !ok {
				continue
			}
			if mine, has := role.set(access).At(at); has && (!found || mine.EndsAfter(next)) {
				next, found = mine, true
			}
		}
		switch {
		case !found:
			return false
		case !r.EndsAfter(next):
			return true
		}
		at = next.End
	}
}
