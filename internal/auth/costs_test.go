package auth_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"

	"github.com/quorate/quorate/internal/auth"
)

// many returns a State, loaded and enabled, in which each of many users has one role with many permissions.
func many(t testing.TB, users, permissions int) *auth.State {
	t.Helper()
	var keys []*authpb.Permission
	for i := range permissions {
		keys = append(keys, &authpb.Permission{PermType: authpb.READWRITE, Key: fmt.Appendf(nil, "%06d", i)})
	}
	root := &authpb.User{Name: []byte("root"), Roles: []string{"root"}}
	rows := []auth.Row{{Key: []byte("h"), Value: []byte{1, 9}}, {Key: []byte("uroot"), Value: userValue(root)}, {Key: []byte("rr"), Value: roleValue("r", keys...)}}
	for i := range users {
		u := &authpb.User{Name: fmt.Appendf(nil, "u%06d", i), Roles: []string{"r"}}
		rows = append(rows, auth.Row{Key: append([]byte{'u'}, u.Name...), Value: userValue(u)})
	}
	return loaded(t, rows)
}

// heap returns what of the memory is in use.
func heap() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what a sync.Pool holds goes with the second
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// Ensure that MaxBytes bounds the memory too: users do not multiply permissions, and the sets of roles count.
func TestState_Bytes_memory(t *testing.T) {
	for _, size := range []struct{ users, permissions int }{{1_000, 2_000}, {1, 20_000}, {20_000, 1}} {
		before := heap()
		s := many(t, size.users, size.permissions)
		if got := heap() - before; got > 2*s.Bytes() {
			t.Errorf("%+v: %d KiB in memory, %d KiB are counted", size, got>>10, s.Bytes()>>10)
		}
		before = heap()
		for i := range min(size.users, 100) {
			name := fmt.Sprintf("u%06d", i)
			s = apply(t, s, auth.Change{Kind: auth.UserRevokeRole, User: name, Role: "r"},
				auth.Change{Kind: auth.UserGrantRole, User: name, Role: "r"})
		}
		if got := heap() - before; got > s.Bytes() {
			t.Errorf("%+v: roles granted anew take %d KiB, all counts as %d KiB", size, got>>10, s.Bytes()>>10)
		}
		runtime.KeepAlive(s)
	}
}

// Ensure that a change of a role costs the same however many users have it, and one of a user however large its roles are.
func TestState_Next_costs(t *testing.T) {
	allocations := func(s *auth.State, c auth.Change) float64 {
		return testing.AllocsPerRun(5, func() { apply(t, s, c) })
	}
	const slack = 2 // the runtime's own
	few, lots := many(t, 1, 50), many(t, 5_000, 50)
	for _, c := range []auth.Change{grants("r", auth.Read, "z", ""), revokes("r", "000007", "")} {
		if one, all := allocations(few, c), allocations(lots, c); all > one+slack {
			t.Errorf("%d: %v allocations for a role of 5,000 users, %v for one of a single user", c.Kind, all, one)
		}
	}
	small, large := many(t, 1, 1), many(t, 1, 5_000)
	for _, c := range []auth.Change{
		{Kind: auth.UserRevokeRole, User: "u000000", Role: "r"}, {Kind: auth.UserPassword, User: "u000000", Hash: []byte("h")},
	} {
		if one, all := allocations(small, c), allocations(large, c); all > one+slack {
			t.Errorf("%d: %v allocations for a role of 5,000 permissions, %v for one of a single permission", c.Kind, all, one)
		}
	}
}

// Ensure that revoking is never refused for want of room: what merged in a set before takes more ranges after.
func TestState_Next_revokeShrinks(t *testing.T) {
	s := apply(t, many(t, 1, 50), grants("r", auth.ReadWrite, "0", "1"))
	if next := apply(t, s, revokes("r", "0", "1")); next.Bytes() >= s.Bytes() {
		t.Errorf("%d bytes of %d after a permission was revoked", next.Bytes(), s.Bytes())
	}
}

// Ensure that the roles of a user permit together what none permits alone, without a copy of what they permit, and that a request
// for what thousands of their permissions only permit together is refused before that has cost much.
func TestState_Check_union(t *testing.T) {
	s := apply(t, apply(t, auth.New(), base...), auth.Change{Kind: auth.UserGrantRole, User: "bob", Role: "ops"},
		auth.Change{Kind: auth.UserGrantRole, User: "bob", Role: "app"}, grants("ops", auth.ReadWrite, "c", "e"), enable)
	by := auth.Credentials{User: "bob", Revision: s.Revision()}
	a, b, c, d, f := []byte("a"), []byte("b"), []byte("c"), []byte("d"), []byte("f")
	for _, ask := range []struct {
		name     string
		from, to []byte
		want     error
	}{
		{"one role", a, b, nil},
		{"the other role", c, d, nil},
		{"two roles that touch", a, d, nil},
		{"too far", a, f, auth.ErrPermissionDenied},
		{"from where nothing is permitted", []byte("0"), d, auth.ErrPermissionDenied},
	} {
		t.Run(ask.name, func(t *testing.T) {
			for what, permit := range map[string]func(*auth.Check, []byte, []byte) error{
				"Read": (*auth.Check).Read, "Write": (*auth.Check).Write,
			} {
				asked := func(times int) float64 {
					return testing.AllocsPerRun(10, func() {
						check := s.Check(by)
						for range times {
							if err := permit(&check, ask.from, ask.to); !errors.Is(err, ask.want) {
								t.Errorf("%s: got %v, want %v", what, err, ask.want)
							}
						}
					})
				}
				if none, later := asked(0), asked(9); later > none {
					t.Errorf("%s: %v allocations for nine checks, %v for none", what, later, none)
				}
			}
		})
	}
}

// Ensure that a range is refused which two roles permit only together, by more permissions than MaxLookups allows, and that one is
// permitted which takes as many.
func TestCheck_MaxLookups(t *testing.T) {
	const pieces = auth.MaxLookups // a lookup in two roles for each
	even, odd := []*authpb.Permission{}, []*authpb.Permission{}
	for i := range pieces {
		p := &authpb.Permission{
			PermType: authpb.READWRITE, Key: fmt.Appendf(nil, "%06d", i), RangeEnd: fmt.Appendf(nil, "%06d", i+1),
		}
		if i%2 == 0 {
			even = append(even, p)
		} else {
			odd = append(odd, p)
		}
	}
	s := loaded(t, []auth.Row{
		{Key: []byte("h"), Value: []byte{1, 9}},
		{Key: []byte("uroot"), Value: userValue(&authpb.User{Name: []byte("root"), Roles: []string{"root"}})},
		{Key: []byte("ua"), Value: userValue(&authpb.User{Name: []byte("a"), Roles: []string{"even", "odd"}})},
		{Key: []byte("reven"), Value: roleValue("even", even...)}, {Key: []byte("rodd"), Value: roleValue("odd", odd...)},
	})
	by := auth.Credentials{User: "a", Revision: 9}
	few := s.Check(by)
	if err := few.Write([]byte("000000"), fmt.Appendf(nil, "%06d", pieces/2)); err != nil {
		t.Errorf("half of the pieces: got %v", err)
	}
	if err := few.Write([]byte("000000"), []byte("000002")); !errors.Is(err, auth.ErrPermissionDenied) {
		t.Errorf("two pieces more in the same request: got %v", err)
	}
	if err := few.Write([]byte("000000"), nil); err != nil {
		t.Errorf("one key, which one role permits: got %v", err)
	}
	all := s.Check(by)
	if err := all.Write([]byte("000000"), fmt.Appendf(nil, "%06d", pieces)); !errors.Is(err, auth.ErrPermissionDenied) {
		t.Errorf("all pieces: got %v", err)
	}
}

// Ensure that a role which a loaded user had before it existed permits what it gets later.
func TestState_Check_roleOfLoadedUser(t *testing.T) {
	root := &authpb.User{Name: []byte("root"), Roles: []string{"root"}}
	s := loaded(t, []auth.Row{{Key: []byte("h"), Value: []byte{1, 9}}, {Key: []byte("uroot"), Value: userValue(root)},
		{Key: []byte("ua"), Value: userValue(&authpb.User{Name: []byte("a"), Roles: []string{"app"}})}})
	by := auth.Credentials{User: "a", Revision: 9}
	check := s.Check(by)
	if err := check.Read([]byte("k"), nil); !errors.Is(err, auth.ErrPermissionDenied) {
		t.Errorf("a role that does not exist: got %v", err)
	}
	s = apply(t, s, auth.Change{Kind: auth.RoleAdd, Role: "app"}, grants("app", auth.Read, "k", ""))
	later := s.Check(by)
	if err := later.Read([]byte("k"), nil); err != nil {
		t.Errorf("a role that was added: got %v", err)
	}
	if err := check.Read([]byte("k"), nil); !errors.Is(err, auth.ErrPermissionDenied) {
		t.Errorf("the check of an earlier State: got %v", err)
	}
}

// Ensure that names are bounded, at 1 KiB.
func TestState_Next_longNames(t *testing.T) {
	longest := string(make([]byte, 1<<10))
	tooLong := longest + "x"
	s := apply(t, apply(t, auth.New(), base...), auth.Change{Kind: auth.UserAdd, User: longest},
		auth.Change{Kind: auth.RoleAdd, Role: longest}, auth.Change{Kind: auth.UserGrantRole, User: longest, Role: longest})
	if diff := difference(s, loaded(t, auth.Rows(s))); diff != "" {
		t.Errorf("the longest names do not load:\n%s", diff)
	}
	for _, c := range []auth.Change{
		{Kind: auth.UserAdd, User: tooLong}, {Kind: auth.RoleAdd, Role: tooLong},
		{Kind: auth.UserGrantRole, User: "bob", Role: tooLong}, grants(tooLong, auth.Read, "a", ""),
	} {
		if next, rows, err := s.Next(&c); !errors.Is(err, auth.ErrBadName) || next != s || rows != nil {
			t.Errorf("%d: got %d rows, %v", c.Kind, len(rows), err)
		}
	}
}
