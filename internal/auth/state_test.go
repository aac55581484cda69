package auth_test

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quorate/quorate/internal/auth"
)

func apply(t testing.TB, s *auth.State, changes ...auth.Change) *auth.State {
	t.Helper()
	for i := range changes {
		next, _, err := s.Next(&changes[i])
		if err != nil {
			t.Fatalf("%+v: %v", changes[i], err)
		}
		s = next
	}
	return s
}

func permission(access auth.Access, key, end string) auth.Permission {
	p := auth.Permission{Access: access, Key: []byte(key)}
	if end != "" {
		p.End = []byte(end)
	}
	return p
}

func grants(role string, access auth.Access, key, end string) auth.Change {
	return auth.Change{Kind: auth.GrantPermission, Role: role, Permission: permission(access, key, end)}
}

func revokes(role, key, end string) auth.Change {
	return auth.Change{Kind: auth.RevokePermission, Role: role, Permission: permission(auth.Read, key, end)}
}

// base are changes after which root is root, alice has the roles app and ops, bob has no password, and app has two permissions.
var base = []auth.Change{
	{Kind: auth.UserAdd, User: "root", Hash: []byte("h1")},
	{Kind: auth.RoleAdd, Role: "root"},
	{Kind: auth.UserGrantRole, User: "root", Role: "root"},
	{Kind: auth.UserAdd, User: "alice", Hash: []byte("h2")},
	{Kind: auth.UserAdd, User: "bob", NoPassword: true},
	{Kind: auth.RoleAdd, Role: "ops"},
	{Kind: auth.RoleAdd, Role: "app"},
	grants("app", auth.Read, "k", ""),
	grants("app", auth.ReadWrite, "a", "c"),
	{Kind: auth.UserGrantRole, User: "alice", Role: "ops"},
	{Kind: auth.UserGrantRole, User: "alice", Role: "app"},
}

var enable = auth.Change{Kind: auth.Enable, Secret: []byte("secret")}

// difference compares all of two States, what is not exported too.
func difference(a, b *auth.State) string {
	return cmp.Diff(a, b, cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty())
}

// loaded returns the State that rows hold.
func loaded(t testing.TB, rows []auth.Row) *auth.State {
	t.Helper()
	s := auth.New()
	for _, row := range rows {
		if err := s.Load(row.Key, row.Value); err != nil {
			t.Fatalf("%q: %v", row.Key, err)
		}
	}
	if err := s.Loaded(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNew(t *testing.T) {
	s := auth.New()
	if s.Enabled() || s.Revision() != 1 || s.Bytes() != 0 || len(s.Users()) > 0 || len(s.Roles()) > 0 || s.Secret() != nil {
		t.Errorf("got %+v", s)
	}
}

// Ensure that changes are rejected as by etcd, and that a rejected one leaves the State as it was.
func TestState_Next_rejections(t *testing.T) {
	for _, row := range []struct {
		name    string
		enabled bool
		change  auth.Change
		want    error
	}{
		{"a user without a name", false, auth.Change{Kind: auth.UserAdd}, auth.ErrUserEmpty},
		{"a user twice", false, auth.Change{Kind: auth.UserAdd, User: "alice"}, auth.ErrUserAlreadyExist},
		{"a user whose name is no text", false, auth.Change{Kind: auth.UserAdd, User: "\xff"}, auth.ErrBadName},
		{"to delete nobody", false, auth.Change{Kind: auth.UserDelete, User: "zoe"}, auth.ErrUserNotFound},
		{"to delete the user root", true, auth.Change{Kind: auth.UserDelete, User: "root"}, auth.ErrInvalidManagement},
		{"a password of nobody", false, auth.Change{Kind: auth.UserPassword, User: "zoe"}, auth.ErrUserNotFound},
		{"a role for nobody", false, auth.Change{Kind: auth.UserGrantRole, User: "zoe", Role: "app"}, auth.ErrUserNotFound},
		{"no role for a user", false, auth.Change{Kind: auth.UserGrantRole, User: "bob"}, auth.ErrRoleNotFound},
		{"an unknown role for a user", false, auth.Change{Kind: auth.UserGrantRole, User: "bob", Role: "x"}, auth.ErrRoleNotFound},
		{"to revoke from nobody", false, auth.Change{Kind: auth.UserRevokeRole, User: "zoe", Role: "app"}, auth.ErrUserNotFound},
		{"to revoke what was not granted", false, auth.Change{Kind: auth.UserRevokeRole, User: "bob", Role: "app"}, auth.ErrRoleNotGranted},
		{"to revoke what does not exist", false, auth.Change{Kind: auth.UserRevokeRole, User: "bob", Role: "x"}, auth.ErrRoleNotGranted},
		{"to take its role from root", true, auth.Change{Kind: auth.UserRevokeRole, User: "root", Role: "root"}, auth.ErrInvalidManagement},
		{"a role without a name", false, auth.Change{Kind: auth.RoleAdd}, auth.ErrRoleEmpty},
		{"a role twice", false, auth.Change{Kind: auth.RoleAdd, Role: "app"}, auth.ErrRoleAlreadyExist},
		{"a role whose name is no text", false, auth.Change{Kind: auth.RoleAdd, Role: "a\xc3"}, auth.ErrBadName},
		{"to delete no role", false, auth.Change{Kind: auth.RoleDelete, Role: "x"}, auth.ErrRoleNotFound},
		{"to delete the role root", true, auth.Change{Kind: auth.RoleDelete, Role: "root"}, auth.ErrInvalidManagement},
		{"a permission for no role", false, grants("x", auth.Read, "a", ""), auth.ErrRoleNotFound},
		{"a permission without a key", false, grants("app", auth.Read, "", ""), auth.ErrInvalidManagement},
		{"a permission from no key on", false, grants("app", auth.Read, "", "\x00"), auth.ErrInvalidManagement},
		{"a permission for an empty range", false, grants("app", auth.Read, "b", "b"), auth.ErrInvalidManagement},
		{"a permission for a range that runs back", false, grants("app", auth.Read, "b", "a"), auth.ErrInvalidManagement},
		{"a permission of an unknown kind", false, grants("app", 3, "b", ""), auth.ErrInvalidManagement},
		{"an empty range for no role", false, grants("x", auth.Read, "b", "a"), auth.ErrInvalidManagement},
		{"to revoke a permission of no role", false, revokes("x", "a", "c"), auth.ErrRoleNotFound},
		{"to revoke a permission of the key alone", false, revokes("app", "a", ""), auth.ErrPermissionNotGranted},
		{"to revoke a part of a permission", false, revokes("app", "a", "b"), auth.ErrPermissionNotGranted},
		{"an unknown kind", false, auth.Change{Kind: 0}, auth.ErrInvalidManagement},
		{"a kind of the future", true, auth.Change{Kind: 200, User: "alice"}, auth.ErrInvalidManagement},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := apply(t, auth.New(), base...)
			if row.enabled {
				s = apply(t, s, enable)
			}
			before := loaded(t, auth.Rows(s))
			next, rows, err := s.Next(&row.change)
			if !errors.Is(err, row.want) || next != s || rows != nil {
				t.Errorf("got %v and %d rows, want %v", err, len(rows), row.want)
			}
			if diff := difference(before, s); diff != "" {
				t.Errorf("the State changed:\n%s", diff)
			}
		})
	}
}

func TestState_Next_enable(t *testing.T) {
	root := []auth.Change{{Kind: auth.UserAdd, User: "root", Hash: []byte("h")}}
	s := auth.New()
	if _, _, err := s.Next(&enable); !errors.Is(err, auth.ErrRootUserNotExist) {
		t.Errorf("without root: got %v", err)
	}
	s = apply(t, s, root...)
	if _, _, err := s.Next(&enable); !errors.Is(err, auth.ErrRootRoleNotExist) {
		t.Errorf("root without its role: got %v", err)
	}
	s = apply(t, s, auth.Change{Kind: auth.UserGrantRole, User: "root", Role: "root"}) // the role need not be added, as in etcd
	on := apply(t, s, enable)
	if !on.Enabled() || s.Enabled() || on.Revision() != s.Revision() || string(on.Secret()) != "secret" {
		t.Errorf("got %v at %d from %d, secret %q", on.Enabled(), on.Revision(), s.Revision(), on.Secret())
	}
	again := auth.Change{Kind: auth.Enable, Secret: []byte("another")}
	if next, rows, err := on.Next(&again); next != on || rows != nil || err != nil {
		t.Errorf("enabled again: got %d rows, %v", len(rows), err)
	}
	off := apply(t, on, auth.Change{Kind: auth.Disable})
	if off.Enabled() || off.Revision() != on.Revision()+1 {
		t.Errorf("got %v at %d, from %d", off.Enabled(), off.Revision(), on.Revision())
	}
	if next, rows, err := off.Next(&auth.Change{Kind: auth.Disable}); next != off || rows != nil || err != nil {
		t.Errorf("disabled again: got %d rows, %v", len(rows), err)
	}
	if string(apply(t, off, again).Secret()) != "another" {
		t.Error("enabling does not renew the secret")
	}
	for _, change := range []auth.Change{{Kind: auth.RoleDelete, Role: "root"}, {Kind: auth.UserRevokeRole, User: "root", Role: "root"},
		{Kind: auth.UserDelete, User: "root"}} { // while it is disabled all of them may go
		apply(t, apply(t, apply(t, auth.New(), base...), enable), auth.Change{Kind: auth.Disable}, change)
	}
}

func TestState_Next_users(t *testing.T) {
	s := apply(t, auth.New(), base...)
	if got := s.Users(); !slices.Equal(got, []string{"alice", "bob", "root"}) {
		t.Errorf("got users %q", got)
	}
	alice, _ := s.User("alice")
	if !slices.Equal(alice.Roles, []string{"app", "ops"}) || string(alice.Hash) != "h2" || alice.NoPassword || alice.Since != 5 {
		t.Errorf("got %+v", alice)
	}
	granted := auth.Change{Kind: auth.UserGrantRole, User: "alice", Role: "app"}
	if next, rows, err := s.Next(&granted); next != s || rows != nil || err != nil {
		t.Errorf("a role that the user has: got %d rows, %v", len(rows), err)
	}
	next := apply(t, s, auth.Change{Kind: auth.UserPassword, User: "alice", Hash: []byte("h3")},
		auth.Change{Kind: auth.UserPassword, User: "bob", Hash: []byte("h4")})
	alice, _ = next.User("alice")
	if string(alice.Hash) != "h3" || alice.Since != s.Revision()+1 || !slices.Equal(alice.Roles, []string{"app", "ops"}) {
		t.Errorf("got %+v", alice)
	}
	bob, _ := next.User("bob")
	if len(bob.Hash) > 0 || !bob.NoPassword || bob.Since != s.Revision()+2 {
		t.Errorf("who never had a password gets none, but its tokens end: got %+v", bob)
	}
	next = apply(t, next, auth.Change{Kind: auth.UserDelete, User: "alice"}, auth.Change{Kind: auth.UserAdd, User: "alice"})
	alice, _ = next.User("alice")
	if len(alice.Roles) > 0 || alice.Since != next.Revision() {
		t.Errorf("who comes back gets nothing back: got %+v", alice)
	}
	hidden := apply(t, auth.New(), auth.Change{Kind: auth.UserAdd, User: "eve", Hash: []byte("h"), NoPassword: true})
	if eve, _ := hidden.User("eve"); len(eve.Hash) > 0 {
		t.Errorf("who has no password has a hash: got %+v", eve)
	}
}

func TestState_Next_roles(t *testing.T) {
	s := apply(t, auth.New(), base...)
	role, _ := s.Role("app")
	want := []auth.Permission{permission(auth.ReadWrite, "a", "c"), permission(auth.Read, "k", "")}
	if diff := cmp.Diff(want, role.Permissions, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	s = apply(t, s, grants("app", auth.Write, "k", ""), grants("app", auth.Read, "k", "\x00"), grants("app", auth.Read, "k", "l"),
		revokes("app", "a", "c"))
	role, _ = s.Role("app")
	want = []auth.Permission{permission(auth.Write, "k", ""), permission(auth.Read, "k", "\x00"), permission(auth.Read, "k", "l")}
	if diff := cmp.Diff(want, role.Permissions, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("one range has one permission, the last:\n%s", diff)
	}
	next := apply(t, s, auth.Change{Kind: auth.RoleDelete, Role: "app"})
	if next.HasRole("alice", "app") || !next.HasRole("alice", "ops") || next.HasRole("zoe", "ops") {
		t.Error("a role that is deleted is taken from its users, and no other one")
	}
	if got := next.Roles(); !slices.Equal(got, []string{"ops", "root"}) {
		t.Errorf("got roles %q", got)
	}
	back := apply(t, next, enable, auth.Change{Kind: auth.RoleAdd, Role: "app"}, grants("app", auth.Read, "a", ""))
	check := back.Check(auth.Credentials{User: "alice", Revision: back.Revision()})
	if err := check.Read([]byte("a"), nil); !errors.Is(err, auth.ErrPermissionDenied) {
		t.Errorf("a role of the same name is another one: got %v", err)
	}
}

// Ensure that a State does not hold on to the bytes of a Change.
func TestState_Next_clones(t *testing.T) {
	hash, key, end, secret := []byte("hash"), []byte("a"), []byte("c"), []byte("secret")
	s := apply(t, auth.New(), base...)
	s = apply(t, s, auth.Change{Kind: auth.UserAdd, User: "eve", Hash: hash}, auth.Change{Kind: auth.RoleAdd, Role: "r"},
		auth.Change{Kind: auth.GrantPermission, Role: "r", Permission: auth.Permission{Key: key, End: end}},
		auth.Change{Kind: auth.Enable, Secret: secret})
	before := loaded(t, auth.Rows(s))
	for _, shared := range [][]byte{hash, key, end, secret} {
		clear(shared)
	}
	if diff := difference(before, s); diff != "" {
		t.Error(diff)
	}
}

func TestState_Next_tooLarge(t *testing.T) {
	const large = 1 << 20
	s := auth.New()
	var rejected error
	names := 0
	for ; names < 100 && rejected == nil; names++ {
		c := auth.Change{Kind: auth.UserAdd, User: string(rune('A' + names)), Hash: bytes.Repeat([]byte{1}, large)}
		next, rows, err := s.Next(&c)
		if err != nil && (next != s || rows != nil) {
			t.Fatal("a rejected change changes something")
		}
		s, rejected = next, err
	}
	if !errors.Is(rejected, auth.ErrTooLarge) || s.Bytes() > auth.MaxBytes || s.Bytes() < auth.MaxBytes-2*large {
		t.Fatalf("got %v at %d bytes", rejected, s.Bytes())
	}
	more := auth.Change{Kind: auth.UserPassword, User: "A", Hash: bytes.Repeat([]byte{1}, 2*large)}
	if _, _, err := s.Next(&more); !errors.Is(err, auth.ErrTooLarge) {
		t.Errorf("a longer hash: got %v", err)
	}
	s = apply(t, s, auth.Change{Kind: auth.UserPassword, User: "A"}, auth.Change{Kind: auth.UserDelete, User: "B"}, more)
	if s.Bytes() > auth.MaxBytes {
		t.Errorf("%d bytes", s.Bytes())
	}
}

// Ensure that a user that logged in before authentication was disabled is refused once it was enabled again, whichever member
// took the old token: a member that has not applied that yet does.
func TestState_Next_enableAgain(t *testing.T) {
	s := apply(t, auth.New(), append(slices.Clone(base), enable)...)
	alice, _ := s.User("alice")
	by := auth.Credentials{User: "alice", Revision: alice.Since}
	s = apply(t, s, auth.Change{Kind: auth.Disable}, auth.Change{Kind: auth.Enable, Secret: []byte("another")})
	if check := s.Check(by); !errors.Is(check.User(), auth.ErrOldRevision) {
		t.Errorf("got %v, want %v", check.User(), auth.ErrOldRevision)
	}
	alice, _ = s.User("alice")
	by.Revision = alice.Since
	if check := s.Check(by); check.User() != nil || string(alice.Hash) != "h2" || len(alice.Roles) != 2 {
		t.Errorf("who logs in again is refused, or another: %v, %+v", check.User(), alice)
	}
}
