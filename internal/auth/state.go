package auth

import (
	"cmp"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/quorate/quorate/internal/base/keyrange"
)

// The names that are root's, as in etcd.
const (
	RootUser = "root"
	RootRole = "root"
)

// MaxBytes bounds what users and roles take: names, hashes, permissions and the sets made of them, and a share for each.
const MaxBytes = 64 << 20

// maxNameBytes bounds the name of a user or a role.
const maxNameBytes = 1 << 10

// User is a user. It must not be modified.
type User struct {
	Name       string
	Hash       []byte // bcrypt
	NoPassword bool
	Roles      []string // sorted
	// Since is the revision at which the user was added or got its password. A token from before is void.
	Since uint64
}

// Role is a role. It must not be modified.
type Role struct {
	Name        string
	Permissions []Permission // sorted by key, then by end
	// The ranges that Permissions permit together. They are made once, and all users of the role share them.
	read, write keyrange.Set
}

// State is all users and roles at one revision. The zero value is not ready: New makes the first one.
type State struct {
	enabled  bool
	revision uint64
	secret   []byte
	users    map[string]*User
	roles    map[string]*Role
	tokens   map[string]*JoinToken
	bytes    int
	rows     uint64 // hashes of all rows but the head's, added up
	sum      uint64 // that of the head, too
}

// New returns the State of a cluster that has no user yet. Its revision is 1, as in etcd.
func New() *State {
	return &State{revision: 1, users: map[string]*User{}, roles: map[string]*Role{}, tokens: map[string]*JoinToken{}}
}

// Enabled reports whether requests are checked.
func (s *State) Enabled() bool { return s.enabled }

// Revision grows with every change of users, roles and permissions.
func (s *State) Revision() uint64 { return s.revision }

// Secret signs tokens; nil before authentication was enabled for the first time. It must not be modified.
func (s *State) Secret() []byte { return s.secret }

// User returns a user.
func (s *State) User(name string) (*User, bool) {
	u, ok := s.users[name]
	return u, ok
}

// Role returns a role.
func (s *State) Role(name string) (*Role, bool) {
	r, ok := s.roles[name]
	return r, ok
}

// Users returns the names of all users, sorted.
func (s *State) Users() []string { return slices.Sorted(maps.Keys(s.users)) }

// Roles returns the names of all roles, sorted.
func (s *State) Roles() []string { return slices.Sorted(maps.Keys(s.roles)) }

// HasRole reports whether a user has a role.
func (s *State) HasRole(user, role string) bool {
	u, ok := s.users[user]
	return ok && u.has(role)
}

// Bytes is what counts against MaxBytes.
func (s *State) Bytes() int { return s.bytes }

// Sum is a hash over all of the State, by which members can be compared; zero as long as nothing was ever made.
func (s *State) Sum() uint64 { return s.sum }

func (u *User) has(role string) bool {
	_, found := slices.BinarySearch(u.Roles, role)
	return found
}

// goodName does not ask whether there is a name: each change that needs one has its own error.
func goodName(name string) bool { return len(name) <= maxNameBytes && utf8.ValidString(name) }

// perItem is counted for each user, role, granted role, permission and range of a set beside its bytes.
const perItem = 64

func (u *User) size() int {
	n := perItem + len(u.Name) + len(u.Hash)
	for _, role := range u.Roles {
		n += perItem + len(role)
	}
	return n
}

func (r *Role) size() int {
	n := perItem + len(r.Name)
	for i := range r.Permissions {
		n += r.Permissions[i].size()
	}
	return n
}

func (t *JoinToken) size() int {
	return perItem + len(t.ID) + len(t.Hash) + len(t.Owner) + len(t.UsedBy)*len(t.Hash)
}

// size counts a range in each set, also one that merges with others there: to revoke a permission never needs more room.
func (p *Permission) size() int {
	n := perItem + len(p.Key) + len(p.End)
	if len(p.End) == 0 {
		n += 2*len(p.Key) + 1 // keyrange.Single
	}
	if p.Access != Write {
		n += perItem
	}
	if p.Access != Read {
		n += perItem
	}
	return n
}

// AddsBytes is how much longer a change can make users and roles, as State.Bytes counts them: at most so much.
func (c *Change) AddsBytes() int {
	n := 2*perItem + len(c.User) + len(c.Role) + len(c.Hash) + c.Permission.size()
	if c.Token != nil {
		n += c.Token.size()
	}
	return n
}

// makeSets is called once, before another goroutine sees the role.
func (r *Role) makeSets() {
	for i := range r.Permissions {
		p := &r.Permissions[i]
		keys := keyrange.From(p.Key, p.End)
		if p.Access != Write {
			r.read.Add(keys)
		}
		if p.Access != Read {
			r.write.Add(keys)
		}
	}
}

// set is what the role permits to read or to write.
func (r *Role) set(access Access) *keyrange.Set {
	if access == Read {
		return &r.read
	}
	return &r.write
}

func (p *Permission) compareRange(key, end []byte) int {
	return cmp.Or(cmp.Compare(string(p.Key), string(key)), cmp.Compare(string(p.End), string(end)))
}
