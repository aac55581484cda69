package auth

import (
	"fmt"
	"math"
	"slices"

	"go.etcd.io/etcd/api/v3/authpb"
)

// Imported returns the rows of a State with the users and roles that etcd had stored, in no particular order. It has no secret:
// Enable gives it one, also while authentication is enabled. The error says what no cluster may begin with.
func Imported(enabled bool, revision uint64, users []*authpb.User, roles []*authpb.Role) ([]Row, error) {
	if revision > math.MaxInt64 {
		return nil, fmt.Errorf("%w: revision %d", ErrCorruptRow, revision) // zero comes after the last one, and is none
	}
	from := New()
	from.enabled, from.revision = enabled, max(revision, 1)
	rows := []Row{from.headRow()}
	for _, r := range roles {
		role := &Role{Name: string(r.Name)}
		for _, p := range r.KeyPermission {
			if p.GetPermType() < 0 || p.GetPermType() > authpb.READWRITE {
				return nil, fmt.Errorf("%w: role %q", ErrCorruptRow, r.Name)
			}
			role.Permissions = append(role.Permissions, Permission{Access(p.GetPermType()), p.Key, p.RangeEnd})
		}
		slices.SortFunc(role.Permissions, func(a, b Permission) int { return a.compareRange(b.Key, b.End) })
		rows = append(rows, Row{roleRow(role.Name), role.encode()})
	}
	for _, u := range users {
		user := &User{Name: string(u.Name), Hash: u.Password, NoPassword: u.Options.GetNoPassword(), Since: from.revision}
		user.Roles = slices.Compact(slices.Sorted(slices.Values(u.Roles)))
		rows = append(rows, Row{userRow(user.Name), user.encode()})
	}
	state := New()
	for i := range rows {
		if err := state.Load(rows[i].Key, rows[i].Value); err != nil {
			return nil, err
		}
	}
	switch root, ok := state.users[RootUser]; {
	case state.bytes > MaxBytes:
		return nil, ErrTooLarge
	case enabled && (!ok || !root.has(RootRole)):
		return nil, fmt.Errorf("%w: authentication is enabled, and no user root has the role root", ErrCorruptRow)
	}
	return rows, nil
}
