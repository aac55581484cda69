package auth

import (
	"encoding/binary"
	"fmt"
	"math"

	"go.etcd.io/etcd/api/v3/authpb"
	"google.golang.org/protobuf/proto"

	"github.com/cespare/xxhash/v2"
	"github.com/quorate/quorate/internal/base/invariant"
)

// Tables, by the first byte of a row's key:
//
//	'h'      -> enabled, revision, secret
//	'u' name -> revision of the password, then etcd's authpb.User
//	'r' name -> etcd's authpb.Role
//	't' id   -> a join token
const (
	tableHead  = 'h'
	tableUser  = 'u'
	tableRole  = 'r'
	tableToken = 't'
)

// Row is one row of the tables to write. An empty Value deletes it.
type Row struct{ Key, Value []byte }

// digest is a hash of a row. Rows that are deleted have none.
func (r *Row) digest() uint64 {
	if len(r.Value) == 0 {
		return 0
	}
	return xxhash.Sum64(append(binary.AppendUvarint(nil, xxhash.Sum64(r.Key)), r.Value...))
}

// rowOf is the row that the State has under a key, as it would be written now.
func (s *State) rowOf(key []byte) Row {
	name := string(key[1:])
	switch key[0] {
	case tableUser:
		if u := s.users[name]; u != nil {
			return Row{key, u.encode()}
		}
	case tableRole:
		if r := s.roles[name]; r != nil {
			return Row{key, r.encode()}
		}
	case tableToken:
		if t := s.tokens[name]; t != nil {
			return Row{key, t.encode()}
		}
	}
	return Row{Key: key}
}

func userRow(name string) []byte { return append([]byte{tableUser}, name...) }

func roleRow(name string) []byte { return append([]byte{tableRole}, name...) }

func tokenRow(id string) []byte { return append([]byte{tableToken}, id...) }

func (s *State) headRow() Row {
	value := []byte{0}
	if s.enabled {
		value[0] = 1
	}
	return Row{[]byte{tableHead}, append(binary.AppendUvarint(value, s.revision), s.secret...)}
}

// Message returns the user as etcd stores it.
func (u *User) Message() *authpb.User {
	return &authpb.User{
		Name: []byte(u.Name), Password: u.Hash, Roles: u.Roles, Options: &authpb.UserAddOptions{NoPassword: u.NoPassword},
	}
}

// Message returns the role as etcd stores it.
func (r *Role) Message() *authpb.Role {
	m := &authpb.Role{Name: []byte(r.Name)}
	for i := range r.Permissions {
		p := &r.Permissions[i]
		m.KeyPermission = append(m.KeyPermission,
			&authpb.Permission{PermType: authpb.Permission_Type(p.Access), Key: p.Key, RangeEnd: p.End})
	}
	return m
}

func (u *User) encode() []byte { return appendMessage(binary.AppendUvarint(nil, u.Since), u.Message()) }

func (r *Role) encode() []byte { return appendMessage(nil, r.Message()) }

func appendMessage(dst []byte, m proto.Message) []byte {
	dst, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(dst, m)
	if err != nil { // text that is not UTF-8, which no Change brings in
		invariant.Broken("a row of package auth does not encode: %v", err)
	}
	return dst
}

// Load takes a row of a table into a State that New made. After the last one, Loaded must be called. Rows that no State writes
// are refused: names that Next refuses, permissions that no user may grant, lists out of order, a row twice.
func (s *State) Load(key, value []byte) error {
	if len(key) == 0 {
		return fmt.Errorf("%w: no key", ErrCorruptRow)
	}
	name := string(key[1:])
	switch {
	case key[0] == tableHead && name == "":
		return s.loadHead(value)
	case name == "" || !goodName(name):
	case key[0] == tableUser && s.users[name] == nil:
		if u := decodeUser(name, value); u != nil {
			s.users[name] = u
			s.bytes += u.size()
			return nil
		}
	case key[0] == tableRole && s.roles[name] == nil:
		if r := decodeRole(name, value); r != nil {
			s.roles[name] = r
			s.bytes += r.size()
			return nil
		}
	case key[0] == tableToken && s.tokens[name] == nil:
		if t := decodeToken(name, value); t != nil {
			s.tokens[name] = t
			s.bytes += t.size()
			return nil
		}
	}
	return fmt.Errorf("%w: table %q, name %q", ErrCorruptRow, key[0], name)
}

func (s *State) loadHead(value []byte) error {
	if len(value) < 2 || value[0] > 1 {
		return fmt.Errorf("%w: head", ErrCorruptRow)
	}
	revision, n := binary.Uvarint(value[1:])
	if n <= 0 || revision == 0 {
		return fmt.Errorf("%w: revision in the head", ErrCorruptRow)
	}
	s.enabled, s.revision, s.secret = value[0] == 1, revision, append([]byte(nil), value[1+n:]...)
	return nil
}

// decodeUser returns nil if the row is none of a user.
func decodeUser(name string, value []byte) *User {
	since, n := binary.Uvarint(value)
	var m authpb.User
	if n <= 0 || proto.Unmarshal(value[n:], &m) != nil || string(m.Name) != name {
		return nil
	}
	for i, role := range m.Roles {
		if role == "" || !goodName(role) || i > 0 && m.Roles[i-1] >= role {
			return nil
		}
	}
	return &User{Name: name, Hash: m.Password, NoPassword: m.Options.GetNoPassword(), Roles: m.Roles, Since: since}
}

// decodeRole returns nil if the row is none of a role.
func decodeRole(name string, value []byte) *Role {
	var m authpb.Role
	if proto.Unmarshal(value, &m) != nil || string(m.Name) != name {
		return nil
	}
	r := &Role{Name: name}
	for i, from := range m.KeyPermission {
		if from.GetPermType() < 0 || from.GetPermType() > authpb.Permission_READWRITE {
			return nil
		}
		p := Permission{Access(from.GetPermType()), from.GetKey(), from.GetRangeEnd()}
		if !p.valid() || i > 0 && r.Permissions[i-1].compareRange(p.Key, p.End) >= 0 {
			return nil
		}
		r.Permissions = append(r.Permissions, p)
	}
	return r
}

// Format of a token's row: expiry as uvarint, uses as uvarint, hash, length and bytes of the owner, then 32 bytes for each
// newcomer that was admitted.
func (t *JoinToken) encode() []byte {
	row := binary.AppendUvarint(nil, uint64(t.Expires))
	row = binary.AppendUvarint(row, uint64(t.Uses))
	row = append(row, t.Hash[:]...)
	row = append(binary.AppendUvarint(row, uint64(len(t.Owner))), t.Owner...)
	for i := range t.UsedBy {
		row = append(row, t.UsedBy[i][:]...)
	}
	return row
}

// decodeToken returns nil if the row is none of a join token.
func decodeToken(id string, row []byte) *JoinToken {
	expires, n := binary.Uvarint(row)
	if n <= 0 || expires > math.MaxInt64 || !goodTokenID(id) {
		return nil
	}
	row = row[n:]
	uses, n := binary.Uvarint(row)
	if n <= 0 || uses < 1 || uses > MaxTokenUses || len(row) < n+32 {
		return nil
	}
	t := &JoinToken{ID: id, Hash: [32]byte(row[n:]), Expires: int64(expires), Uses: int(uses)}
	row = row[n+32:]
	length, n := binary.Uvarint(row)
	if n <= 0 || length > uint64(len(row)-n) {
		return nil
	}
	t.Owner, row = string(row[n:n+int(length)]), row[n+int(length):]
	if len(row)%32 != 0 || len(row)/32 > t.Uses || !goodName(t.Owner) {
		return nil
	}
	for ; len(row) > 0; row = row[32:] {
		t.UsedBy = append(t.UsedBy, [32]byte(row))
	}
	return t
}

// Loaded ends what Load began. It refuses rows that no State has together.
func (s *State) Loaded() error {
	for name, r := range s.roles {
		r.makeSets()
		s.addRow(roleRow(name))
	}
	for name := range s.tokens {
		s.addRow(tokenRow(name))
	}
	if s.enabled && !s.HasRole(RootUser, RootRole) {
		return fmt.Errorf("%w: authentication is enabled, and no user root has the role root", ErrCorruptRow)
	}
	for name, u := range s.users {
		s.addRow(userRow(name))
		if u.Since > s.revision {
			return fmt.Errorf("%w: user %q is of revision %d, the head of %d", ErrCorruptRow, name, u.Since, s.revision)
		}
	}
	if head := s.headRow(); s.rows != 0 || s.revision != 1 || s.enabled {
		s.sum = s.rows + head.digest()
	}
	return nil
}

func (s *State) addRow(key []byte) {
	row := s.rowOf(key)
	s.rows += row.digest()
}
