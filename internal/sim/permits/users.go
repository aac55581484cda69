package permits

import (
	"errors"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/kv"
)

// Users are the users and roles at one place of the log, as simply as possible: maps, and permissions that are checked one by
// one. They share nothing with package auth but its types.
type Users struct {
	Enabled  bool
	revision uint64
	secret   string
	users    map[string]user
	roles    map[string][]auth.Permission
}

type user struct {
	since    uint64   // when the user was added, or got its password
	password string   // its hash
	none     bool     // a user without a password
	roles    []string // sorted
}

// NewUsers returns the users and roles of a new cluster.
func NewUsers() Users {
	return Users{revision: 1, users: map[string]user{}, roles: map[string][]auth.Permission{}}
}

// Change returns the users after a change; the same ones if it changes nothing.
func (u Users) Change(c *auth.Change) (next Users, changed bool, err error) {
	next = u
	next.users, next.roles = maps.Clone(u.users), maps.Clone(u.roles)
	switch c.Kind {
	case auth.Enable:
		root, found := u.users[auth.RootUser]
		switch {
		case u.Enabled:
			return u, false, nil
		case !found:
			return u, false, auth.ErrRootUserNotExist
		case !slices.Contains(root.roles, auth.RootRole):
			return u, false, auth.ErrRootRoleNotExist
		}
		for name, who := range u.users { // users that logged in before must do so again
			if u.secret != "" {
				who.since = u.revision
				next.users[name] = who
			}
		}
		next.Enabled, next.secret = true, string(c.Secret)
		return next, true, nil
	case auth.Disable:
		if !u.Enabled {
			return u, false, nil
		}
		next.Enabled = false
	default:
		next.revision++
		if changed, err = next.edit(c); err != nil || !changed {
			return u, false, err
		}
		return next, true, nil
	}
	next.revision++
	return next, true, nil
}

// edit changes a user or a role. The maps belong to u alone, and its revision is the next one.
func (u *Users) edit(c *auth.Change) (changed bool, err error) {
	if c.Kind >= auth.RoleAdd {
		return true, u.editRole(c)
	}
	now, found := u.users[c.User]
	switch {
	case c.Kind == auth.UserDelete && u.Enabled && c.User == auth.RootUser,
		c.Kind == auth.UserRevokeRole && u.Enabled && c.User == auth.RootUser && c.Role == auth.RootRole:
		return false, auth.ErrInvalidManagement
	case c.Kind == auth.UserAdd && c.User == "":
		return false, auth.ErrUserEmpty
	case c.Kind == auth.UserAdd && found:
		return false, auth.ErrUserAlreadyExist
	case c.Kind != auth.UserAdd && !found:
		return false, auth.ErrUserNotFound
	}
	has := slices.Contains(now.roles, c.Role)
	switch c.Kind {
	case auth.UserDelete:
		delete(u.users, c.User)
		return true, nil
	case auth.UserAdd:
		now = user{since: u.revision, password: string(c.Hash), none: c.NoPassword}
	case auth.UserPassword:
		now.since, now.password = u.revision, string(c.Hash)
	case auth.UserGrantRole:
		if _, known := u.roles[c.Role]; !known && c.Role != auth.RootRole {
			return false, auth.ErrRoleNotFound
		}
		if has {
			return false, nil
		}
		now.roles = slices.Sorted(slices.Values(append(slices.Clone(now.roles), c.Role)))
	case auth.UserRevokeRole:
		if !has {
			return false, auth.ErrRoleNotGranted
		}
		now.roles = without(now.roles, c.Role)
	}
	if now.none {
		now.password = ""
	}
	u.users[c.User] = now
	return true, nil
}

func without(roles []string, role string) []string {
	return slices.DeleteFunc(slices.Clone(roles), func(r string) bool { return r == role })
}

func (u *Users) editRole(c *auth.Change) error {
	now, found := u.roles[c.Role]
	switch {
	case c.Kind == auth.RoleAdd && c.Role == "":
		return auth.ErrRoleEmpty
	case c.Kind == auth.RoleAdd && found:
		return auth.ErrRoleAlreadyExist
	case c.Kind == auth.RoleDelete && u.Enabled && c.Role == auth.RootRole:
		return auth.ErrInvalidManagement
	case c.Kind != auth.RoleAdd && !found:
		return auth.ErrRoleNotFound
	}
	other := slices.DeleteFunc(slices.Clone(now), func(p auth.Permission) bool {
		return string(p.Key) == string(c.Permission.Key) && string(p.End) == string(c.Permission.End)
	})
	switch c.Kind {
	case auth.RoleDelete:
		delete(u.roles, c.Role)
		for name, who := range u.users {
			who.roles = without(who.roles, c.Role)
			u.users[name] = who
		}
		return nil
	case auth.GrantPermission:
		other = append(other, c.Permission)
	case auth.RevokePermission:
		if len(other) == len(now) {
			return auth.ErrPermissionNotGranted
		}
	}
	u.roles[c.Role] = other
	return nil
}

// need is one permission that a command needs.
type need struct {
	write    bool
	key, end string
}

// needs are the permissions that a command needs, and the leases whose keys it needs; root says that it needs the role root,
// none that every user may run it.
type needs struct {
	list   []need
	leases []kv.LeaseID
	root   bool
	none   bool
}

func needsOf(c *kv.Command) (n needs) {
	switch {
	case c.Put != nil:
		n.put(c.Put)
	case c.Delete != nil:
		n.remove(c.Delete)
	case c.Txn != nil:
		n.txn(c.Txn)
	case c.Compact != nil, c.Auth != nil, c.Alarm != nil, c.Raise != nil && c.Raise.Finalize,
		c.LevelPolicy != nil && !c.LevelPolicy.Initial && !c.LevelPolicy.Returned,
		c.Audit != nil && c.Audit.Kind != kv.AuditHead, c.Backup != nil && c.Backup.Kind == kv.BackupSet:
		n.root = true
	case c.LeaseGrant != nil:
	case c.LeaseRevoke != nil && c.LeaseRevoke.Term == 0:
		n.leases = append(n.leases, c.LeaseRevoke.ID)
	default:
		n.none = true
	}
	return n
}

func (n *needs) reads(key, end []byte) {
	n.list = append(n.list, need{false, string(key), string(end)})
}

func (n *needs) writes(key, end []byte) {
	n.list = append(n.list, need{true, string(key), string(end)})
}

func (n *needs) put(op *kv.PutOp) {
	n.writes(op.Key, nil)
	if op.PrevKV {
		n.reads(op.Key, nil)
	}
	if op.Lease != 0 {
		n.leases = append(n.leases, op.Lease)
	}
}

func (n *needs) remove(op *kv.DeleteOp) {
	n.writes(op.Key, op.End)
	if op.PrevKV {
		n.reads(op.Key, op.End)
	}
}

// txn adds the needs of both branches.
func (n *needs) txn(t *kv.TxnOp) {
	for i := range t.Compares {
		n.reads(t.Compares[i].Key, t.Compares[i].End)
	}
	for _, op := range slices.Concat(t.Then, t.Else) {
		switch {
		case op.Put != nil:
			n.put(op.Put)
		case op.Delete != nil:
			n.remove(op.Delete)
		case op.Range != nil:
			n.reads(op.Range.Key, op.Range.End)
		case op.Txn != nil:
			n.txn(op.Txn)
		}
	}
}

// Permit returns the error with which a command is refused. keys returns the keys of a lease.
func (u *Users) Permit(c *kv.Command, keys func(kv.LeaseID) []string) error {
	if !u.Enabled {
		return nil
	}
	n := needsOf(c)
	return u.permit(c.By, &n, keys)
}

// permit returns the error with which a user is refused. keys returns the keys of a lease.
func (u *Users) permit(by auth.Credentials, n *needs, keys func(kv.LeaseID) []string) error {
	if !u.Enabled || by.Member || n.none {
		return nil
	}
	who, known := u.users[by.User]
	switch {
	case by.User == "" || by.Revision == 0:
		return auth.ErrUserEmpty
	case !known:
		return auth.ErrPermissionDenied
	case by.Revision < who.since:
		return auth.ErrOldRevision
	case slices.Contains(who.roles, auth.RootRole):
		return nil
	case n.root:
		return auth.ErrPermissionDenied
	}
	all := slices.Clone(n.list)
	for _, id := range n.leases {
		for _, key := range keys(id) {
			all = append(all, need{true, key, ""})
		}
	}
	for _, one := range all {
		if !u.covers(&who, one) {
			return auth.ErrPermissionDenied
		}
	}
	return nil
}

// covers checks the first key of the range, and each key in it at which a permission begins or ends: between two of these
// nothing changes.
func (u *Users) covers(who *user, n need) bool {
	end, open := n.end, n.end == "\x00"
	if end == "" || !open && end <= n.key {
		end = n.key + "\x00"
	}
	points := []string{n.key}
	var ranges []auth.Permission
	for _, role := range who.roles {
		for _, p := range u.roles[role] {
			if p.Access != auth.ReadWrite && (p.Access == auth.Write) != n.write {
				continue
			}
			if len(p.End) == 0 {
				p.End = append(slices.Clone(p.Key), 0)
			}
			ranges = append(ranges, p)
			for _, at := range []string{string(p.Key), string(p.End)} {
				if at > n.key && (open || at < end) && at != "\x00" {
					points = append(points, at)
				}
			}
		}
	}
	for _, at := range points {
		if !slices.ContainsFunc(ranges, func(p auth.Permission) bool {
			return string(p.Key) <= at && (string(p.End) == "\x00" || at < string(p.End))
		}) {
			return false
		}
	}
	return true
}

// permissionErrors are the errors of the state machine for a missing permission, and what clients are told of them.
var permissionErrors = map[error]error{
	auth.ErrUserEmpty: rpctypes.ErrGRPCUserEmpty, auth.ErrPermissionDenied: rpctypes.ErrGRPCPermissionDenied,
	auth.ErrOldRevision: rpctypes.ErrGRPCAuthOldRevision,
}

// ForWantOfPermission reports whether an error is one of these.
func ForWantOfPermission(err error) bool {
	for one, told := range permissionErrors {
		if Says(err, one, told) {
			return true
		}
	}
	return false
}

// Says reports whether an error is another one, or told, which clients get in its place.
func Says(err, what, told error) bool {
	if errors.Is(err, what) {
		return true
	}
	got, want := status.Convert(err), status.Convert(told)
	return err != nil && got.Code() == want.Code() && got.Message() == want.Message()
}
