package auth

import (
	"bytes"
	"slices"
)

// Next returns the State after c, and the rows that changed. A change that finds everything as it would leave it returns s and
// no rows. The error is one of the rejections; s is what counts then.
func (s *State) Next(c *Change) (*State, []Row, error) {
	d := &draft{State: *s}
	changed, err := d.change(c)
	if err != nil || !changed {
		return s, nil, err
	}
	if d.bytes > MaxBytes && d.bytes > s.bytes {
		return s, nil, ErrTooLarge
	}
	next := d.State // a copy, so that it does not keep the rows in memory
	next.rows += s.difference(d.rows)
	head := next.headRow()
	next.sum = next.rows + head.digest()
	return &next, append(d.rows, head), nil
}

// difference is what rows that are written add to State.rows.
func (s *State) difference(rows []Row) (sum uint64) {
	written := make(map[string]bool, len(rows))
	for i := len(rows) - 1; i >= 0; i-- {
		if key := string(rows[i].Key); !written[key] { // else it is written again later
			written[key] = true
			before := s.rowOf(rows[i].Key)
			sum += rows[i].digest() - before.digest()
		}
	}
	return sum
}

func (d *draft) change(c *Change) (changed bool, err error) {
	if !goodName(c.User) || !goodName(c.Role) {
		return false, ErrBadName
	}
	switch c.Kind {
	case Enable:
		return d.enable(c)
	case Disable:
		if !d.enabled {
			return false, nil
		}
		d.enabled = false
		d.revision++
		return true, nil
	case UserAdd:
		err = d.addUser(c)
	case UserDelete:
		err = d.deleteUser(c)
	case UserPassword:
		err = d.setPassword(c)
	case UserGrantRole:
		if changed, err = d.grantRole(c); !changed {
			return false, err
		}
	case UserRevokeRole:
		err = d.revokeRole(c)
	case RoleAdd:
		err = d.addRole(c)
	case RoleDelete:
		err = d.deleteRole(c)
	case GrantPermission:
		err = d.grantPermission(c)
	case RevokePermission:
		err = d.revokePermission(c)
	case JoinTokenAdd, JoinTokenDelete, JoinTokenUse:
		return d.changeTokens(c)
	default:
		err = ErrInvalidManagement
	}
	if err != nil {
		return false, err
	}
	d.revision++
	return true, nil
}

// enable does not raise the revision, as in etcd. A State that was restored from a backup may be enabled and have no secret:
// then this gives it one. A new secret ends all tokens from before, where it is known. A member that lags still takes them, so
// all users count as added now: disabling has raised the revision since they logged in.
func (d *draft) enable(c *Change) (bool, error) {
	root, ok := d.State.users[RootUser]
	switch {
	case d.enabled && len(d.secret) > 0:
		return false, nil
	case !ok:
		return false, ErrRootUserNotExist
	case !root.has(RootRole):
		return false, ErrRootRoleNotExist
	}
	if len(d.secret) > 0 {
		for _, name := range d.Users() {
			next := *d.State.users[name]
			next.Since = d.revision
			d.putUser(&next)
		}
	}
	d.dropOwnerless()
	d.enabled, d.secret = true, bytes.Clone(c.Secret)
	return true, nil
}

func (d *draft) addUser(c *Change) error {
	if c.User == "" {
		return ErrUserEmpty
	}
	if _, ok := d.State.users[c.User]; ok {
		return ErrUserAlreadyExist
	}
	u := &User{Name: c.User, NoPassword: c.NoPassword, Since: d.revision + 1}
	if !c.NoPassword {
		u.Hash = bytes.Clone(c.Hash)
	}
	d.putUser(u)
	return nil
}

func (d *draft) deleteUser(c *Change) error {
	if d.enabled && c.User == RootUser {
		return ErrInvalidManagement
	}
	u, ok := d.State.users[c.User]
	if !ok {
		return ErrUserNotFound
	}
	d.ownUsers()
	d.bytes -= u.size()
	delete(d.State.users, c.User)
	d.rows = append(d.rows, Row{Key: userRow(c.User)})
	return nil
}

func (d *draft) setPassword(c *Change) error {
	u, ok := d.State.users[c.User]
	if !ok {
		return ErrUserNotFound
	}
	next := *u
	next.Hash, next.Since = nil, d.revision+1
	if !u.NoPassword {
		next.Hash = bytes.Clone(c.Hash)
	}
	d.putUser(&next)
	return nil
}

func (d *draft) grantRole(c *Change) (bool, error) {
	u, ok := d.State.users[c.User]
	if !ok {
		return false, ErrUserNotFound
	}
	if _, ok := d.State.roles[c.Role]; !ok && c.Role != RootRole {
		return false, ErrRoleNotFound
	}
	at, found := slices.BinarySearch(u.Roles, c.Role)
	if found {
		return false, nil
	}
	next := *u
	next.Roles = slices.Insert(slices.Clone(u.Roles), at, c.Role)
	d.putUser(&next)
	return true, nil
}

func (d *draft) revokeRole(c *Change) error {
	if d.enabled && c.User == RootUser && c.Role == RootRole {
		return ErrInvalidManagement
	}
	u, ok := d.State.users[c.User]
	if !ok {
		return ErrUserNotFound
	}
	if !u.has(c.Role) {
		return ErrRoleNotGranted
	}
	d.putUser(u.without(c.Role))
	return nil
}

func (u *User) without(role string) *User {
	next := *u
	next.Roles = slices.DeleteFunc(slices.Clone(u.Roles), func(r string) bool { return r == role })
	return &next
}

func (d *draft) addRole(c *Change) error {
	if c.Role == "" {
		return ErrRoleEmpty
	}
	if _, ok := d.State.roles[c.Role]; ok {
		return ErrRoleAlreadyExist
	}
	d.putRole(&Role{Name: c.Role})
	return nil
}

func (d *draft) deleteRole(c *Change) error {
	if d.enabled && c.Role == RootRole {
		return ErrInvalidManagement
	}
	r, ok := d.State.roles[c.Role]
	if !ok {
		return ErrRoleNotFound
	}
	d.ownRoles()
	d.bytes -= r.size()
	delete(d.State.roles, c.Role)
	d.rows = append(d.rows, Row{Key: roleRow(c.Role)})
	for _, name := range d.Users() {
		if u := d.State.users[name]; u.has(c.Role) {
			d.putUser(u.without(c.Role))
		}
	}
	return nil
}

func (d *draft) grantPermission(c *Change) error {
	if !c.Permission.valid() {
		return ErrInvalidManagement
	}
	r, ok := d.State.roles[c.Role]
	if !ok {
		return ErrRoleNotFound
	}
	granted := Permission{c.Permission.Access, bytes.Clone(c.Permission.Key), bytes.Clone(c.Permission.End)}
	next := &Role{Name: r.Name, Permissions: slices.Clone(r.Permissions)}
	at, found := next.find(granted.Key, granted.End)
	if found {
		next.Permissions[at] = granted
	} else {
		next.Permissions = slices.Insert(next.Permissions, at, granted)
	}
	d.putRole(next)
	return nil
}

func (d *draft) revokePermission(c *Change) error {
	r, ok := d.State.roles[c.Role]
	if !ok {
		return ErrRoleNotFound
	}
	at, found := r.find(c.Permission.Key, c.Permission.End)
	if !found {
		return ErrPermissionNotGranted
	}
	d.putRole(&Role{Name: r.Name, Permissions: slices.Delete(slices.Clone(r.Permissions), at, at+1)})
	return nil
}

func (r *Role) find(key, end []byte) (at int, found bool) {
	return slices.BinarySearchFunc(r.Permissions, Permission{Key: key, End: end}, func(p, wanted Permission) int {
		return p.compareRange(wanted.Key, wanted.End)
	})
}
