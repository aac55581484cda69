package auth

// Kind says what a Change does. The numbers are on disk.
type Kind uint8

// The kinds of changes.
const (
	Enable           Kind = 1 // Secret
	Disable          Kind = 2
	UserAdd          Kind = 3  // User, Hash or NoPassword
	UserDelete       Kind = 4  // User
	UserPassword     Kind = 5  // User, Hash
	UserGrantRole    Kind = 6  // User, Role
	UserRevokeRole   Kind = 7  // User, Role
	RoleAdd          Kind = 8  // Role
	RoleDelete       Kind = 9  // Role
	GrantPermission  Kind = 10 // Role, Permission
	RevokePermission Kind = 11 // Role, Permission.Key, Permission.End
	JoinTokenAdd     Kind = 12 // Token, Now
	JoinTokenDelete  Kind = 13 // Token.ID, Now
	JoinTokenUse     Kind = 14 // Token.ID and Token.Hash, Newcomer, Now

	lastKind = JoinTokenUse
)

// Adds reports whether a change may make users and roles longer.
func (c *Change) Adds() bool {
	switch c.Kind {
	case UserAdd, UserGrantRole, RoleAdd, GrantPermission, JoinTokenAdd:
		return true
	}
	return false
}

// Valid reports whether there is such a kind.
func (k Kind) Valid() bool { return k >= Enable && k <= lastKind }

// OfJoinToken reports whether such a change has a Token.
func (k Kind) OfJoinToken() bool { return k >= JoinTokenAdd && k <= JoinTokenUse }

// Change is one change of users, roles or permissions.
type Change struct {
	Kind       Kind
	User, Role string
	Hash       []byte // bcrypt, of the password; empty: the user cannot log in by password
	NoPassword bool   // the user has none, and never gets one
	Permission Permission
	// Secret signs the tokens that are handed out from now on: see auth/login.
	Secret []byte
	// Token is a join token, Newcomer who is admitted by it, and Now the time in Unix milliseconds by the proposer's clock:
	// tokens that have expired by then go.
	Token    *JoinToken
	Newcomer [32]byte
	Now      int64
}

// Access is what a permission permits. The numbers are etcd's.
type Access uint8

// The kinds of access.
const (
	Read      Access = 0
	Write     Access = 1
	ReadWrite Access = 2
)

// Permission permits access to the keys of an etcd pair: End empty is Key alone, "\x00" all keys from Key on.
type Permission struct {
	Access   Access
	Key, End []byte
}

// valid reports whether the range is one that may be granted: it has a key, and is not empty.
func (p *Permission) valid() bool {
	if len(p.Key) == 0 || p.Access > ReadWrite {
		return false
	}
	return len(p.End) == 0 || string(p.End) == "\x00" || string(p.Key) < string(p.End)
}
